! Ranks average their gradients, and sum the averages: threads, or processes under mpirun.
module baton
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), parameter :: baton_f32 = 10        ! of baton/c/types.h
  integer(c_intptr_t), parameter :: baton_sum = 1, baton_avg = 2

  interface
    function baton_launch(ranks, options, body, context) bind(c) result(status)
      import
      integer(c_int), value :: ranks
      type(c_ptr), value :: options, context
      type(c_funptr), value :: body
      integer(c_int) :: status
    end function
    function baton_rank(communicator) bind(c) result(rank)
      import
      type(c_ptr), value :: communicator
      integer(c_int) :: rank
    end function
    function baton_all_reduce(communicator, input, output, count, type, op, choice) bind(c) result(status)
      import
      type(c_ptr), value :: communicator, input, output, choice
      integer(c_int64_t), value :: count
      integer(c_int), value :: type
      integer(c_intptr_t), value :: op
      integer(c_int) :: status
    end function
    function baton_start_all_reduce(communicator, input, output, count, type, op, choice, request) &
        bind(c) result(status)
      import
      type(c_ptr), value :: communicator, input, output, choice
      integer(c_int64_t), value :: count
      integer(c_int), value :: type
      integer(c_intptr_t), value :: op
      type(c_ptr) :: request
      integer(c_int) :: status
    end function
    function baton_wait(request) bind(c) result(status)
      import
      type(c_ptr) :: request
      integer(c_int) :: status
    end function
  end interface
end module

module ranks
  use baton
contains
  recursive function rank_program(world, context) bind(c) result(status)
    type(c_ptr), value :: world, context
    integer(c_int) :: status
    real(c_float), allocatable, target :: gradients(:), sums(:)
    character(kind=c_char, len=10), target :: ring
    type(c_ptr) :: request
    integer(c_int64_t), pointer :: count
    call c_f_pointer(context, count)
    allocate (gradients(count), sums(count))
    gradients = real(baton_rank(world) + 1, c_float)
    status = baton_all_reduce(world, c_loc(gradients), c_loc(gradients), count, baton_f32, baton_avg, c_null_ptr)
    if (status /= 0) return
    ring = "ring:128K" // c_null_char             ! in the background, in pieces of 128 KiB
    status = baton_start_all_reduce(world, c_loc(gradients), c_loc(sums), count, baton_f32, baton_sum, &
                                    c_loc(ring), request)
    if (status /= 0) return
    status = baton_wait(request)
    if (status /= 0) return
    if (baton_rank(world) == 0) print '(f0.1, 1x, f0.1)', gradients(1), sums(count)
  end function
end module

program main
  use ranks
  integer(c_int) :: status
  integer(c_int64_t), target :: count = 1000
  status = baton_launch(4_c_int, c_null_ptr, c_funloc(rank_program), c_loc(count))
  if (status /= 0) error stop "a rank has failed"
end program
