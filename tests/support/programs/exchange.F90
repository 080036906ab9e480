! Four ranks exchange messages whose matrix is known: rank r sends to its right neighbour 3 messages of 800 (r + 1) bytes, to the
! opposite rank 2 of 12 bytes from a persistent request, and to itself one of 4 bytes. Compiled with -DF08 it is a program of
! `mpi_f08`, with -DMPIF one of `mpif.h`, else one of `mpi`. Collectives: 5 reductions of 80 bytes to all, 2 broadcasts of 40
! bytes from rank 1, one barrier.
#ifdef F08
#define HANDLE(kind) type(kind)
#define STATUS type(MPI_Status)
#define ALL_STATUSES type(MPI_Status) :: statuses(2)
#else
#define HANDLE(kind) integer
#define STATUS integer, dimension(MPI_STATUS_SIZE)
#define ALL_STATUSES integer :: statuses(MPI_STATUS_SIZE, 2)
#endif
program exchange
#ifdef F08
  use mpi_f08
  implicit none
#elif defined MPIF
  implicit none
  include 'mpif.h'
#else
  use mpi
  implicit none
#endif
  integer, parameter :: ranks = 4
  integer :: error, rank, count, left, right, opposite, i
  double precision :: sent(100 * ranks), received(100 * ranks), sums(10)
  integer :: few(3), others(3), one, other, word(10)
  HANDLE(MPI_Comm) :: swapped
  HANDLE(MPI_Request) :: requests(2)
  STATUS :: status
  ALL_STATUSES

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, count, error)
  if (count /= ranks) call MPI_Abort(MPI_COMM_WORLD, 2, error)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  opposite = mod(rank + 2, ranks)
  sent = rank
  few = rank
  one = rank
  word = rank

  ! To the right neighbour: each of three ways once, the second one in a communicator where ranks are in reverse order.
  call MPI_Irecv(received, size(received), MPI_DOUBLE_PRECISION, left, 0, MPI_COMM_WORLD, requests(1), error)
  call MPI_Send(sent, 100 * (rank + 1), MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, error)
  call MPI_Wait(requests(1), status, error)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, swapped, error)
  call MPI_Irecv(received, size(received), MPI_DOUBLE_PRECISION, ranks - 1 - left, 1, swapped, requests(1), error)
  call MPI_Isend(sent, 100 * (rank + 1), MPI_DOUBLE_PRECISION, ranks - 1 - right, 1, swapped, requests(2), error)
  call MPI_Waitall(2, requests, statuses, error)
  call MPI_Sendrecv(sent, 100 * (rank + 1), MPI_DOUBLE_PRECISION, right, 2, &
                    received, size(received), MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, status, error)

  ! To the opposite rank: a request that is started twice.
  call MPI_Recv_init(others, 3, MPI_INTEGER, opposite, 3, MPI_COMM_WORLD, requests(1), error)
  call MPI_Send_init(few, 3, MPI_INTEGER, opposite, 3, MPI_COMM_WORLD, requests(2), error)
  do i = 1, 2
    call MPI_Startall(2, requests, error)
    call MPI_Waitall(2, requests, statuses, error)
  end do
  call MPI_Request_free(requests(1), error)
  call MPI_Request_free(requests(2), error)

  call MPI_Sendrecv(one, 1, MPI_INTEGER, 0, 4, other, 1, MPI_INTEGER, 0, 4, MPI_COMM_SELF, MPI_STATUS_IGNORE, error)

  do i = 1, 4
    call MPI_Allreduce(sent, sums, 10, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  end do
  call MPI_Allreduce(MPI_IN_PLACE, sums, 10, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
  call MPI_Bcast(word, 10, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  call MPI_Bcast(word, 10, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (sums(1) /= 6 .or. word(1) /= 1 .or. others(1) /= opposite) call MPI_Abort(MPI_COMM_WORLD, 3, error)
  call MPI_Comm_free(swapped, error)
  call MPI_Finalize(error)
end program exchange
