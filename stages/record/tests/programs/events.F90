! As events.c, in Fortran: with -DMODULE=mpi_f08 -DF08, with -DMODULE=mpi, or with mpif.h.
#ifdef F08
#define REQUEST type(MPI_Request)
#define STATUS_(name) type(MPI_Status) :: name
#define STATUSES_(name, n) type(MPI_Status) :: name(n)
#define MESSAGE_ type(MPI_Message)
#define TAG_OF(status) status%MPI_TAG
#else
#define REQUEST integer
#define STATUS_(name) integer :: name(MPI_STATUS_SIZE)
#define STATUSES_(name, n) integer :: name(MPI_STATUS_SIZE, n)
#define MESSAGE_ integer
#define TAG_OF(status) status(MPI_TAG)
#endif

program events
#ifdef MODULE
  use MODULE
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer, parameter :: MANY = 300
  integer :: rank, peer, error, done, index, count, indices(18), at
  integer :: out(MANY), in(MANY, MANY)
  logical :: flag
  REQUEST :: requests(2 * MANY)
  MESSAGE_ :: message
  STATUS_(status)
  STATUSES_(statuses, 18)

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  peer = 1 - rank
  out = 0
  call post(MANY)
  call MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE, error)
  call post(4)
  call MPI_Waitall(8, requests, statuses, error)
  call post(5)
  do at = 1, 10
    call MPI_Waitany(10, requests, index, MPI_STATUS_IGNORE, error)
  end do
  call MPI_Waitany(10, requests, index, status, error)
  call post(6)
  done = 0
  do while (done < 12)
    call MPI_Waitsome(12, requests, count, indices, MPI_STATUSES_IGNORE, error)
    done = done + count
  end do
  call post(7)
  done = 0
  do while (done < 14)
    call MPI_Testsome(14, requests, count, indices, statuses, error)
    done = done + count
  end do
  call post(8)
  flag = .false.
  do while (.not. flag)
    call MPI_Testall(16, requests, flag, MPI_STATUSES_IGNORE, error)
  end do
  call post(9)
  done = 0
  do while (done < 18)
    call MPI_Testany(18, requests, index, flag, MPI_STATUS_IGNORE, error)
    if (flag) done = done + 1
  end do
  call post(1)
  flag = .false.
  do while (.not. flag)
    call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, error)
  end do
  call MPI_Wait(requests(2), MPI_STATUS_IGNORE, error)

  call MPI_Send_init(out, 40, MPI_INTEGER, peer, 3, MPI_COMM_WORLD, requests(1), error)
  call MPI_Recv_init(in, 100, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, requests(2), error)
  do at = 1, 10
    call MPI_Startall(2, requests, error)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  end do
  call MPI_Start(requests(1), error)
  call MPI_Start(requests(2), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call MPI_Wait(requests(2), status, error)
  if (TAG_OF(status) /= 3) call MPI_Abort(MPI_COMM_WORLD, 1, error)
  call MPI_Request_free(requests(1), error)
  call MPI_Request_free(requests(2), error)

  call MPI_Sendrecv(out, 5, MPI_INTEGER, peer, 1, in, 9, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
    MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_Sendrecv_replace(out, 6, MPI_INTEGER, peer, 1, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, status, error)
  call MPI_Isend(out, 7, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, requests(1), error)
  call MPI_Recv(in, 100, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call MPI_Isend(out, 8, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, requests(1), error)
  call MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE, error)
  call MPI_Mrecv(in, 100, MPI_INTEGER, message, MPI_STATUS_IGNORE, error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call MPI_Isend(out, 9, MPI_INTEGER, peer, 2, MPI_COMM_WORLD, requests(1), error)
  flag = .false.
  do while (.not. flag)
    call MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, flag, message, MPI_STATUS_IGNORE, error)
  end do
  call MPI_Imrecv(in, 100, MPI_INTEGER, message, requests(2), error)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
  call MPI_Irecv(in, 9, MPI_INTEGER, peer, 99, MPI_COMM_WORLD, requests(1), error)
  call MPI_Cancel(requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call MPI_Iallreduce(out, in, 10, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1), error)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
  call MPI_Finalize(error)

contains

  ! Messages of 1, 2, … elements with tags 10, 11, …, whose receives are posted in the other order.
  subroutine post(n)
    integer, intent(in) :: n
    integer :: place
    do place = 1, n
      call MPI_Irecv(in(1, place), MANY, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, requests(place), error)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, error)
    do place = n, 1, -1
      call MPI_Isend(out, place, MPI_INTEGER, peer, 10 + place, MPI_COMM_WORLD, requests(n + place), error)
    end do
  end subroutine

end program
