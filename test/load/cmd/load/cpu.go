package main

import (
	"context"
	"math"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// workPeriod is how often each worker gets its share of the work: short enough
// to be spread within one CFS period of 100 ms, long enough to be met with the
// kernel's timers.
const workPeriod = 20 * time.Millisecond

// maxDebt is how far a worker may fall behind before it forgives itself the
// rest. A throttled worker then shows steady hunger but not an endless backlog.
const maxDebt = time.Second

// startWorkers runs the work in goroutines until ctx ends.
func startWorkers(ctx context.Context, cores float64, workers int) {
	for range workers {
		go work(ctx, cores/float64(workers))
	}
}

// workersFor returns how many workers to use: those asked for, or one for each
// core wanted.
func workersFor(cores float64, asked int) int {
	if asked > 0 {
		return asked
	}
	return int(math.Ceil(cores))
}

// work uses `share` of one core, at most 1. It counts processor time, not time
// on the clock, so that other work on the machine does not lessen the demand.
func work(ctx context.Context, share float64) {
	if share >= 1 {
		workAlways(ctx)
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	slice := time.Duration(share * float64(workPeriod))
	next := time.Now()
	for ctx.Err() == nil {
		burn(ctx, slice)
		next = next.Add(workPeriod)
		if time.Since(next) > maxDebt {
			next = time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(next)):
		}
	}
}

// workAlways leaves its thread to the scheduler, as a plain program would: there
// is nothing to count.
func workAlways(ctx context.Context) {
	for ctx.Err() == nil {
		spin()
	}
}

// burn uses an amount of this thread's processor time.
func burn(ctx context.Context, amount time.Duration) {
	for end := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) + amount; cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) < end && ctx.Err() == nil; {
		spin()
	}
}

// spin computes for about a tenth of a millisecond, so that a worker is rarely
// found in the system call that asks for its time.
func spin() {
	var sum uint64
	for i := range uint64(150000) {
		sum = sum*31 + i
	}
	runtime.KeepAlive(sum) // Or the compiler would drop the loop.
}

// cpuTime is the processor time used by this process or thread, as one of the two
// clocks counts it. What getrusage(2) says of a thread is as old as the last tick,
// which is longer than most of what is burnt here.
func cpuTime(clock int32) time.Duration {
	var used unix.Timespec
	if err := unix.ClockGettime(clock, &used); err != nil {
		return 0
	}
	return time.Duration(used.Nano())
}
