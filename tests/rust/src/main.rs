// SPDX-License-Identifier: Apache-2.0
// A tour through MPI in Rust, with known counts: on each rank 5 sums, 3 messages around a ring, and 7 barriers of a half.
use mpi::collective::SystemOperation;
use mpi::request::WaitGuard;
use mpi::topology::Color;
use mpi::traits::*;

#[inline(never)]
fn sums(world: &impl Communicator) -> i32 {
    let mut sum = 0;
    for _ in 0..5 {
        world.all_reduce_into(&world.rank(), &mut sum, SystemOperation::sum());
    }
    sum
}

#[inline(never)]
fn ring(world: &impl Communicator) {
    let (rank, size) = (world.rank(), world.size());
    let data = [rank; 100];
    for _ in 0..3 {
        mpi::request::scope(|scope| {
            let _sent = WaitGuard::from(
                world
                    .process_at_rank((rank + 1) % size)
                    .immediate_send(scope, &data[..]),
            );
            let (got, _) = world
                .process_at_rank((rank + size - 1) % size)
                .receive_vec::<i32>();
            assert_eq!(got, [(rank + size - 1) % size; 100]);
        });
    }
}

fn main() {
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let sum = sums(&world);
    ring(&world);
    let half = world
        .split_by_color(Color::with_value(world.rank() % 2))
        .unwrap();
    for _ in 0..7 {
        half.barrier();
    }
    if world.rank() == 0 {
        println!("sum {}", sum);
    }
}
