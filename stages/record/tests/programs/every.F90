! As every.c, in Fortran: with -DMODULE=mpi_f08 -DF08, with -DMODULE=mpi, or with mpif.h.
#ifdef F08
#define COMM type(MPI_Comm)
#define TYPE_ type(MPI_Datatype)
#define REQUEST type(MPI_Request)
#define WIN type(MPI_Win)
#else
#define COMM integer
#define TYPE_ integer
#define REQUEST integer
#define WIN integer
#endif

program every
#ifdef MODULE
  use MODULE
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer, parameter :: SIZE = 4096
  integer :: rank, peer, next, error, file
  integer :: out(SIZE), in(SIZE), buffer(SIZE)
  integer :: counts(2), displs(2), mine(2), bytes(2)
  TYPE_ :: types(2), rtypes(2)
  COMM :: world
  character(len=256) :: name

  call MPI_Init(error)
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank, error)
  peer = 1 - rank
  next = 1
  counts = (/ 3, 5 /)
  displs = (/ 0, 64 /)
  mine = counts(rank + 1)
  types = MPI_INTEGER
  rtypes = MPI_INTEGER
  out = 0
  call get_command_argument(1, name)
  open(newunit=file, file=trim(name) // '-' // char(ichar('0') + rank))
  call point_to_point()
  call one_sided()
  call collectives()
  call nonblocking()
  call neighbours()
  call communicators()
  close(file)
  call MPI_Finalize(error)

contains

  subroutine pair(kind, length)
    integer, intent(in) :: kind, length
    write(file, '(A,I0,A,I0,A,I0)') 'pair ', kind, ' ', peer, ' ', length
  end subroutine

  subroutine collective(kind, length)
    character(len=*), intent(in) :: kind
    integer, intent(in) :: length
    write(file, '(A,A,A,I0)') 'collective ', kind, ' ', length
  end subroutine

  integer function sending()
    sending = next
    next = next + 1
    call pair(0, 4 * sending)
  end function

  subroutine receive()
    call MPI_Recv(in, SIZE, MPI_INTEGER, peer, 0, world, MPI_STATUS_IGNORE, error)
  end subroutine

  subroutine done(r)
    REQUEST, intent(inout) :: r
    call receive()
    call MPI_Wait(r, MPI_STATUS_IGNORE, error)
  end subroutine

  subroutine again(r)
    REQUEST, intent(inout) :: r
    call MPI_Start(r, error)
    call done(r)
    call MPI_Request_free(r, error)
  end subroutine

  subroutine point_to_point()
    REQUEST :: r, both(2)
    integer :: n
    call MPI_Buffer_attach(buffer, 4 * SIZE, error)
    ! Small enough to be sent before they are received.
    n = sending(); call MPI_Send(out, n, MPI_INTEGER, peer, 0, world, error); call receive()
    n = sending(); call MPI_Bsend(out, n, MPI_INTEGER, peer, 0, world, error); call receive()
    n = sending(); call MPI_Isend(out, n, MPI_INTEGER, peer, 0, world, r, error); call done(r)
    n = sending(); call MPI_Ibsend(out, n, MPI_INTEGER, peer, 0, world, r, error); call done(r)
    n = sending(); call MPI_Issend(out, n, MPI_INTEGER, peer, 0, world, r, error); call done(r)
    n = sending()
    call MPI_Irecv(in, SIZE, MPI_INTEGER, peer, 0, world, r, error)
    call MPI_Ssend(out, n, MPI_INTEGER, peer, 0, world, error)
    call MPI_Wait(r, MPI_STATUS_IGNORE, error)
    n = sending()
    call MPI_Irecv(in, SIZE, MPI_INTEGER, peer, 0, world, r, error)
    call MPI_Barrier(world, error); call collective('barrier', 0)
    call MPI_Rsend(out, n, MPI_INTEGER, peer, 0, world, error)
    call MPI_Wait(r, MPI_STATUS_IGNORE, error)
    n = sending()
    call MPI_Irecv(in, SIZE, MPI_INTEGER, peer, 0, world, both(1), error)
    call MPI_Barrier(world, error); call collective('barrier', 0)
    call MPI_Irsend(out, n, MPI_INTEGER, peer, 0, world, both(2), error)
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE, error)
    n = sending()
    call MPI_Sendrecv(out, n, MPI_INTEGER, peer, 0, in, SIZE, MPI_INTEGER, peer, 0, world, MPI_STATUS_IGNORE, error)
    n = sending()
    call MPI_Sendrecv_replace(out, n, MPI_INTEGER, peer, 0, peer, 0, world, MPI_STATUS_IGNORE, error)
    n = sending(); call MPI_Send_init(out, n, MPI_INTEGER, peer, 0, world, r, error); call again(r)
    n = sending(); call MPI_Bsend_init(out, n, MPI_INTEGER, peer, 0, world, r, error); call again(r)
    n = sending(); call MPI_Ssend_init(out, n, MPI_INTEGER, peer, 0, world, r, error); call again(r)
    n = sending()
    call MPI_Rsend_init(out, n, MPI_INTEGER, peer, 0, world, both(1), error)
    call MPI_Recv_init(in, SIZE, MPI_INTEGER, peer, 0, world, both(2), error)
    call MPI_Start(both(2), error)
    call MPI_Barrier(world, error); call collective('barrier', 0)
    call MPI_Startall(1, both, error)
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE, error)
    call MPI_Request_free(both(1), error)
    call MPI_Request_free(both(2), error)
    call MPI_Send(out, 5, MPI_INTEGER, MPI_PROC_NULL, 0, world, error)
  end subroutine

  subroutine one_sided()
    WIN :: w
    REQUEST :: r
    integer(MPI_ADDRESS_KIND) :: at
    integer, save :: memory(64), old(64), own(64)
    at = 4 * 64
    memory = 0; old = 0; own = 0
    call MPI_Win_create(memory, at, 4, MPI_INFO_NULL, world, w, error)
    call MPI_Win_fence(0, w, error)
    at = 0;  call MPI_Put(own, 1, MPI_INTEGER, peer, at, 1, MPI_INTEGER, w, error); call pair(1, 4)
    at = 8;  call MPI_Get(old, 2, MPI_INTEGER, peer, at, 2, MPI_INTEGER, w, error); call pair(2, 8)
    at = 16; call MPI_Accumulate(own, 3, MPI_INTEGER, peer, at, 3, MPI_INTEGER, MPI_SUM, w, error); call pair(1, 12)
    call MPI_Win_fence(0, w, error)
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, w, error)
    at = 24
    call MPI_Get_accumulate(own, 4, MPI_INTEGER, old, 4, MPI_INTEGER, peer, at, 4, MPI_INTEGER, MPI_SUM, w, error)
    call pair(1, 16); call pair(2, 16)
    call MPI_Get_accumulate(own, 0, MPI_INTEGER, old, 5, MPI_INTEGER, peer, at, 5, MPI_INTEGER, MPI_NO_OP, w, error)
    call pair(2, 20)
    call MPI_Fetch_and_op(own, old, MPI_INTEGER, peer, at, MPI_SUM, w, error); call pair(1, 4); call pair(2, 4)
    call MPI_Compare_and_swap(own, old, old(2), MPI_INTEGER, peer, at, w, error); call pair(1, 8); call pair(2, 4)
    call MPI_Rput(own, 6, MPI_INTEGER, peer, at, 6, MPI_INTEGER, w, r, error); call pair(1, 24)
    call MPI_Wait(r, MPI_STATUS_IGNORE, error)
    call MPI_Rget(old, 7, MPI_INTEGER, peer, at, 7, MPI_INTEGER, w, r, error); call pair(2, 28)
    call MPI_Wait(r, MPI_STATUS_IGNORE, error)
    call MPI_Raccumulate(own, 8, MPI_INTEGER, peer, at, 8, MPI_INTEGER, MPI_SUM, w, r, error); call pair(1, 32)
    call MPI_Wait(r, MPI_STATUS_IGNORE, error)
    call MPI_Rget_accumulate(own, 9, MPI_INTEGER, old, 9, MPI_INTEGER, peer, at, 9, MPI_INTEGER, MPI_SUM, w, r, error)
    call MPI_Wait(r, MPI_STATUS_IGNORE, error); call pair(1, 36); call pair(2, 36)
    call MPI_Win_unlock(peer, w, error)
    call MPI_Win_free(w, error)
  end subroutine

  integer function at_root(length)
    integer, intent(in) :: length
    at_root = merge(length, 0, rank == 1)
  end function

#define I_ MPI_INTEGER
#define BLOCKING error
#define FINISH
  subroutine collectives()
#include "collectives.inc"
    ! The receive buffer holds what is sent.
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, in, 20, I_, world, error); call collective('allgather', 80)
    call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INTEGER, in, 21, I_, world, error); call collective('alltoall', 168)
    if (rank == 1) then
      call MPI_Gather(MPI_IN_PLACE, 0, MPI_INTEGER, in, 22, I_, 1, world, error)
    else
      call MPI_Gather(out, 22, I_, in, 0, MPI_INTEGER, 1, world, error)
    end if
    call collective('gather', 88)
  end subroutine

#undef BLOCKING
#undef FINISH
#define BLOCKING r, error
#define FINISH call MPI_Wait(r, MPI_STATUS_IGNORE, error)
#define NONBLOCKING
  subroutine nonblocking()
    REQUEST :: r
#include "collectives.inc"
  end subroutine

  subroutine neighbours()
    COMM :: ring
    REQUEST :: r
    integer :: other(2)
    integer(MPI_ADDRESS_KIND) :: far(2)
    other = peer
    far = (/ 0, 64 /)
    bytes = (/ 2, 3 /)
    call MPI_Dist_graph_create_adjacent(world, 2, other, MPI_UNWEIGHTED, 2, other, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., &
      ring, error)
    call MPI_Neighbor_allgather(out, 6, I_, in, 6, I_, ring, error)
    call pair(3, 24); call pair(3, 24); call collective('neighbor_allgather', 48)
    call MPI_Neighbor_alltoall(out, 9, I_, in, 9, I_, ring, error)
    call pair(3, 36); call pair(3, 36); call collective('neighbor_alltoall', 72)
    call MPI_Neighbor_alltoallv(out, bytes, displs, I_, in, bytes, displs, I_, ring, error)
    call pair(3, 8); call pair(3, 12); call collective('neighbor_alltoallv', 20)
    call MPI_Ineighbor_alltoallw(out, bytes, far, types, in, bytes, far, rtypes, ring, r, error)
    call pair(3, 8); call pair(3, 12); call collective('neighbor_alltoallw', 20)
    call MPI_Wait(r, MPI_STATUS_IGNORE, error)
    call MPI_Comm_free(ring, error)
  end subroutine

  subroutine communicators()
    COMM :: reversed, copy
    REQUEST :: r
    integer :: round
    call MPI_Comm_split(world, 0, -rank, reversed, error)
    call MPI_Isend(out, 100, I_, rank, 0, reversed, r, error); call pair(0, 400)
    call MPI_Recv(in, 100, I_, rank, 0, reversed, MPI_STATUS_IGNORE, error)
    call MPI_Wait(r, MPI_STATUS_IGNORE, error)
    do round = 1, 3
      call MPI_Comm_dup(reversed, copy, error)
      call MPI_Bcast(out, 101, I_, 0, copy, error); call collective('bcast', at_root(404))
      call MPI_Comm_free(copy, error)
    end do
    call MPI_Comm_free(reversed, error)
  end subroutine
end program
