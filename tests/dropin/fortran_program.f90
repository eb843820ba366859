! A Fortran program: every collective in both forms, with Fortran's own datatypes and constants.
! Prints a line for each check; stops with code 1 where a result was not as expected.
program fortran_program
  use mpi
  implicit none
  integer, parameter :: n = 50
  integer :: world_rank, error, half, length
  character(MPI_MAX_OBJECT_NAME) :: name
  integer :: status(MPI_STATUS_SIZE)
  character(9) :: argument

  call mpi_init(error)
  call mpi_comm_rank(MPI_COMM_WORLD, world_rank, error)
  call mpi_comm_split(MPI_COMM_WORLD, mod(world_rank, 2), -world_rank, half, error)
  call mpi_comm_set_name(half, 'ocean and ice  ', error)
  call mpi_comm_get_name(half, name, length, error)
  call check('named', name(:length) == 'ocean and ice' .and. error == MPI_SUCCESS)
  call mpi_pcontrol(1)
  call moved(MPI_COMM_WORLD, .false.)
  call moved(MPI_COMM_WORLD, .true.)
  call moved(half, .true.)
  call reduced(MPI_COMM_WORLD, .false.)
  call reduced(MPI_COMM_WORLD, .true.)
  call reduced(half, .false.)
  call types(MPI_COMM_WORLD)
  call under_way(MPI_COMM_WORLD)
  call mpi_pcontrol(0)
  call get_command_argument(1, argument)
  if (argument == '--drop-in') call listed(MPI_COMM_WORLD)
  call mpi_comm_free(half, error)
  call mpi_finalize(error)

contains

  subroutine check(name, right)
    character(*), intent(in) :: name
    logical, intent(in) :: right
    if (.not. right) then
      print '(a,a,a,i0)', 'FAILED ', name, ' on rank ', world_rank
      call mpi_abort(MPI_COMM_WORLD, 1, error)
    end if
    if (world_rank == 0) print '(a)', name
  end subroutine

  ! What `from` sends to `to`, `count` elements.
  function values(from, to, count)
    integer, intent(in) :: from, to, count
    integer :: values(count), i
    values = [(10000 * from + 100 * to + i, i = 1, count)]
  end function

  ! Completes a nonblocking call, whose request is not null.
  subroutine finish(request)
    integer, intent(inout) :: request
    call mpi_wait(request, status, error)
    call check('  waited', request == MPI_REQUEST_NULL .and. error == MPI_SUCCESS)
  end subroutine

  subroutine moved(comm, later)
    integer, intent(in) :: comm
    logical, intent(in) :: later
    integer :: rank, size, root, peer, request, mine(n), got(n)
    integer, allocatable :: to_all(:), gathered(:), from_all(:), expected(:)
    integer, allocatable :: counts(:), displs(:), uneven(:), kinds(:)

    call mpi_comm_rank(comm, rank, error)
    call mpi_comm_size(comm, size, error)
    root = size - 1
    mine = values(rank, 0, n)
    to_all = [(values(rank, peer, n), peer = 0, size - 1)]
    from_all = [(values(peer, rank, n), peer = 0, size - 1)]
    gathered = [(values(peer, 0, n), peer = 0, size - 1)]
    ! Rank r has r elements; they are gathered with a gap behind each.
    counts = [(peer, peer = 0, size - 1)]
    displs = [(peer * (peer + 1) / 2, peer = 0, size - 1)]
    allocate(uneven(displs(size) + size))
    uneven = -1
    do peer = 0, size - 1
      uneven(displs(peer + 1) + 1:displs(peer + 1) + peer) = values(peer, 0, peer)
    end do
    allocate(expected(n * size))

    if (later) then
      call mpi_ibarrier(comm, request, error)
      call finish(request)
    else
      call mpi_barrier(comm, error)
    end if

    got = merge(values(root, 7, n), -1, rank == root)
    if (later) then
      call mpi_ibcast(got, n, MPI_INTEGER, root, comm, request, error)
      call finish(request)
    else
      call mpi_bcast(got, n, MPI_INTEGER, root, comm, error)
    end if
    call check('bcast', all(got == values(root, 7, n)))

    expected = -1
    if (later) then
      call mpi_igather(mine, n, MPI_INTEGER, expected, n, MPI_INTEGER, root, comm, request, error)
      call finish(request)
    else
      call mpi_gather(mine, n, MPI_INTEGER, expected, n, MPI_INTEGER, root, comm, error)
    end if
    call check('gather', all(expected == merge(gathered, -1, rank == root)))

    ! In place: the rank's own part is there.
    expected = -1
    expected(rank * n + 1:rank * n + n) = mine
    if (later) then
      call mpi_iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, expected, n, MPI_INTEGER, comm, &
        request, error)
      call finish(request)
    else
      call mpi_allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, expected, n, MPI_INTEGER, comm, error)
    end if
    call check('allgather in place', all(expected == gathered))

    got = -1
    if (later) then
      call mpi_iscatter(to_all, n, MPI_INTEGER, got, n, MPI_INTEGER, root, comm, request, error)
      call finish(request)
    else
      call mpi_scatter(to_all, n, MPI_INTEGER, got, n, MPI_INTEGER, root, comm, error)
    end if
    call check('scatter', all(got == values(root, rank, n)))

    expected = -1
    if (later) then
      call mpi_ialltoall(to_all, n, MPI_INTEGER, expected, n, MPI_INTEGER, comm, request, error)
      call finish(request)
    else
      call mpi_alltoall(to_all, n, MPI_INTEGER, expected, n, MPI_INTEGER, comm, error)
    end if
    call check('alltoall', all(expected == from_all))

    deallocate(expected)
    allocate(expected(displs(size) + size))
    expected = -1
    if (later) then
      call mpi_igatherv(mine, rank, MPI_INTEGER, expected, counts, displs, MPI_INTEGER, root, &
        comm, request, error)
      call finish(request)
    else
      call mpi_gatherv(mine, rank, MPI_INTEGER, expected, counts, displs, MPI_INTEGER, root, &
        comm, error)
    end if
    call check('gatherv', all(expected == merge(uneven, -1, rank == root)))
    expected = -1
    if (later) then
      call mpi_iallgatherv(mine, rank, MPI_INTEGER, expected, counts, displs, MPI_INTEGER, comm, &
        request, error)
      call finish(request)
    else
      call mpi_allgatherv(mine, rank, MPI_INTEGER, expected, counts, displs, MPI_INTEGER, comm, &
        error)
    end if
    call check('allgatherv', all(expected == uneven))
    got = -1
    if (later) then
      call mpi_iscatterv(uneven, counts, displs, MPI_INTEGER, got, rank, MPI_INTEGER, root, comm, &
        request, error)
      call finish(request)
    else
      call mpi_scatterv(uneven, counts, displs, MPI_INTEGER, got, rank, MPI_INTEGER, root, comm, &
        error)
    end if
    call check('scatterv', all(got(:rank) == mine(:rank)) .and. all(got(rank + 1:) == -1))

    ! One element for each rank, the last ranks' first.
    expected = -1
    counts = 1
    displs = [(size - 1 - peer, peer = 0, size - 1)]
    to_all = [(100 * rank + size - 1 - peer, peer = 0, size - 1)]
    if (later) then
      call mpi_ialltoallv(to_all, counts, displs, MPI_INTEGER, expected, counts, displs, &
        MPI_INTEGER, comm, request, error)
      call finish(request)
    else
      call mpi_alltoallv(to_all, counts, displs, MPI_INTEGER, expected, counts, displs, &
        MPI_INTEGER, comm, error)
    end if
    call check('alltoallv', &
      all(expected(:size) == [(100 * (size - 1 - peer) + rank, peer = 0, size - 1)]))
    expected = -1
    kinds = [(merge(MPI_INTEGER, MPI_INTEGER4, mod(peer, 2) == 0), peer = 0, size - 1)]
    if (later) then
      call mpi_ialltoallw(to_all, counts, 4 * displs, kinds, expected, counts, 4 * displs, &
        kinds, comm, request, error)
      call finish(request)
    else
      call mpi_alltoallw(to_all, counts, 4 * displs, kinds, expected, counts, 4 * displs, &
        kinds, comm, error)
    end if
    call check('alltoallw', &
      all(expected(:size) == [(100 * (size - 1 - peer) + rank, peer = 0, size - 1)]))
  end subroutine

  subroutine reduced(comm, later)
    integer, intent(in) :: comm
    logical, intent(in) :: later
    integer :: rank, size, i, request
    integer, allocatable :: counts(:)
    double precision, allocatable :: mine(:), got(:), total(:)

    call mpi_comm_rank(comm, rank, error)
    call mpi_comm_size(comm, size, error)
    allocate(counts(size), got(3 * size))
    counts = 3
    mine = [(dble(rank + 1) * i, i = 1, 3 * size)]
    total = [(dble(size * (size + 1) / 2) * i, i = 1, 3 * size)]

    got = -1
    if (later) then
      call mpi_ireduce(mine, got, 3, MPI_DOUBLE_PRECISION, MPI_SUM, 0, comm, request, error)
      call finish(request)
    else
      call mpi_reduce(mine, got, 3, MPI_DOUBLE_PRECISION, MPI_SUM, 0, comm, error)
    end if
    call check('reduce', all(got(:3) == merge(total(:3), -1d0, rank == 0)))
    got = mine
    if (later) then
      call mpi_iallreduce(MPI_IN_PLACE, got, 3 * size, MPI_DOUBLE_PRECISION, MPI_SUM, comm, &
        request, error)
      call finish(request)
    else
      call mpi_allreduce(MPI_IN_PLACE, got, 3 * size, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
    end if
    call check('allreduce in place', all(got == total))
    got = -1
    if (later) then
      call mpi_ireduce_scatter_block(mine, got, 3, MPI_DOUBLE_PRECISION, MPI_SUM, comm, request, &
        error)
      call finish(request)
    else
      call mpi_reduce_scatter_block(mine, got, 3, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
    end if
    call check('reduce_scatter_block', all(got(:3) == total(3 * rank + 1:3 * rank + 3)))
    got = -1
    if (later) then
      call mpi_ireduce_scatter(mine, got, counts, MPI_DOUBLE_PRECISION, MPI_SUM, comm, request, &
        error)
      call finish(request)
    else
      call mpi_reduce_scatter(mine, got, counts, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
    end if
    call check('reduce_scatter', all(got(:3) == total(3 * rank + 1:3 * rank + 3)))
    got = -1
    if (later) then
      call mpi_iscan(mine, got, 2, MPI_DOUBLE_PRECISION, MPI_SUM, comm, request, error)
      call finish(request)
    else
      call mpi_scan(mine, got, 2, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
    end if
    call check('scan', all(got(:2) == dble((rank + 1) * (rank + 2) / 2) * [1, 2]))
    got = -1
    if (later) then
      call mpi_iexscan(mine, got, 2, MPI_DOUBLE_PRECISION, MPI_SUM, comm, request, error)
      call finish(request)
    else
      call mpi_exscan(mine, got, 2, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
    end if
    call check('exscan', rank == 0 .or. all(got(:2) == dble(rank * (rank + 1) / 2) * [1, 2]))
  end subroutine

  ! Fortran's datatypes, an operation written in Fortran, MPI_BOTTOM.
  subroutine types(comm)
    integer, intent(in) :: comm
    integer :: rank, size, op, absolute
    integer(MPI_ADDRESS_KIND) :: address
    complex :: z
    logical :: yes
    integer :: pair(2)
    integer, volatile :: word  ! MPI writes to it by its address

    call mpi_comm_rank(comm, rank, error)
    call mpi_comm_size(comm, size, error)
    z = cmplx(rank, 1)
    call mpi_allreduce(MPI_IN_PLACE, z, 1, MPI_COMPLEX, MPI_SUM, comm, error)
    call check('complex', z == cmplx(size * (size - 1) / 2, size))
    yes = rank == 1
    call mpi_allreduce(MPI_IN_PLACE, yes, 1, MPI_LOGICAL, MPI_LOR, comm, error)
    call check('logical', yes)
    pair = [mod(rank, 2), rank]
    call mpi_allreduce(MPI_IN_PLACE, pair, 1, MPI_2INTEGER, MPI_MAXLOC, comm, error)
    call check('maxloc', all(pair == [1, 1]))

    call mpi_op_create(first, .false., op, error)
    word = rank + 5
    call mpi_allreduce(MPI_IN_PLACE, word, 1, MPI_INTEGER, op, comm, error)
    call mpi_op_free(op, error)
    call check('an operation in Fortran', word == 5 .and. op == MPI_OP_NULL)

    word = merge(4711, 0, rank == 0)
    call mpi_get_address(word, address, error)
    call mpi_type_create_hindexed_block(1, 1, [address], MPI_INTEGER, absolute, error)
    call mpi_type_commit(absolute, error)
    call mpi_bcast(MPI_BOTTOM, 1, absolute, 0, comm, error)
    call mpi_type_free(absolute, error)
    call check('bottom', word == 4711)
  end subroutine

  subroutine first(in, inout, length, datatype)
    integer, intent(in) :: length, datatype
    integer, intent(in) :: in(length)
    integer, intent(inout) :: inout(length)
    if (datatype == MPI_INTEGER) inout = in
  end subroutine

  ! Rank 0 waits for a message that the others send when the barrier is complete.
  subroutine under_way(comm)
    integer, intent(in) :: comm
    integer :: rank, size, peer, word, index, flag_count, barrier
    integer :: requests(3), statuses(MPI_STATUS_SIZE, 3), indices(3)
    integer, volatile :: mine, total, shared  ! in use by MPI until waited for
    logical :: over

    call mpi_comm_rank(comm, rank, error)
    call mpi_comm_size(comm, size, error)
    call mpi_ibarrier(comm, barrier, error)
    if (rank == 0) then
      do peer = 1, size - 1
        call mpi_recv(word, 1, MPI_INTEGER, peer, 3, comm, status, error)
        call check('received', word == peer .and. status(MPI_SOURCE) == peer)
      end do
      call mpi_wait(barrier, MPI_STATUS_IGNORE, error)
    else
      call mpi_wait(barrier, MPI_STATUS_IGNORE, error)
      call mpi_send(rank, 1, MPI_INTEGER, 0, 3, comm, error)
    end if

    mine = rank
    shared = merge(6, 0, rank == 0)
    requests(2) = MPI_REQUEST_NULL
    call mpi_iallreduce(mine, total, 1, MPI_INTEGER, MPI_SUM, comm, requests(1), error)
    call mpi_ibcast(shared, 1, MPI_INTEGER, 0, comm, requests(3), error)
    call mpi_waitany(3, requests, index, status, error)
    call check('waitany', index == 1 .or. index == 3)
    call mpi_waitsome(3, requests, flag_count, indices, MPI_STATUSES_IGNORE, error)
    call check('waitsome', flag_count == 1 .and. indices(1) == 4 - index)
    call check('both', total == size * (size - 1) / 2 .and. shared == 6)

    call mpi_iallreduce(mine, total, 1, MPI_INTEGER, MPI_MAX, comm, requests(1), error)
    call mpi_ibarrier(comm, requests(3), error)
    over = .false.
    do while (.not. over)
      call mpi_testall(3, requests, over, statuses, error)
    end do
    call check('testall', total == size - 1 .and. all(requests == MPI_REQUEST_NULL))
  end subroutine

  ! Datatypes of a list that are freed before the call is complete; Open MPI 4.1 alone crashes.
  subroutine listed(comm)
    integer, intent(in) :: comm
    integer :: rank, size, peer, pair, request, round
    integer, allocatable :: kinds(:), counts(:), displs(:), to_all(:)
    integer, allocatable, volatile :: got(:)  ! in use by MPI until waited for

    call mpi_comm_rank(comm, rank, error)
    call mpi_comm_size(comm, size, error)
    counts = [(1, peer = 1, size)]
    displs = [(8 * peer, peer = 0, size - 1)]
    to_all = [(values(rank, peer, 2), peer = 0, size - 1)]
    allocate(got(2 * size))
    do round = 1, 20
      call mpi_type_contiguous(2, MPI_INTEGER, pair, error)
      call mpi_type_commit(pair, error)
      kinds = [(pair, peer = 1, size)]
      got = -1
      call mpi_ialltoallw(to_all, counts, displs, kinds, got, counts, displs, kinds, comm, request, &
        error)
      call mpi_type_free(pair, error)
      call mpi_wait(request, MPI_STATUS_IGNORE, error)
      call check('beyond the library: ialltoallw of a derived type', &
        all(got == [(values(peer, rank, 2), peer = 0, size - 1)]))
    end do
  end subroutine
end program
