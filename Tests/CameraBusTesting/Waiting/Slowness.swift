import Glibc
import LinuxIO
import Synchronization

/// How slow this machine is, measured and not assumed: an emulated machine is, and a loaded one.
///
/// It is measured when it is first asked for, and again when a wait would fail. The greatest value counts.
public enum Slowness {
    private struct Measured {
        /// 0: nothing has been measured yet.
        var factor = 0.0
        var processor = 0.0
        var time: Int64 = 0
    }

    private static let measured = Mutex(Measured())

    /// The processor time of ``work()`` on a quiet machine of today, nanoseconds.
    private static let reference = 4_000_000.0
    /// Nanoseconds from one measurement to the next.
    private static let interval: Int64 = 5_000_000_000
    private static let bounds = 1.0...20.0

    /// How many times longer than on a quiet machine of today something may take here, from 1 to 20.
    public static var factor: Double { measured.withLock { $0.factor == 0 ? measure(&$0) : $0.factor } }

    /// How many times longer a quiet machine like this one takes.
    static var ofProcessor: Double {
        measured.withLock { measured in
            if measured.factor == 0 { _ = measure(&measured) }
            return measured.processor
        }
    }

    /// As ``factor``, measured anew unless that was done just now.
    static func measureAgain() -> Double {
        measured.withLock { MonotonicClock.now() - $0.time < interval ? $0.factor : measure(&$0) }
    }

    private static func measure(_ measured: inout Measured) -> Double {
        let before = processorTime()
        work()
        let processor = limited(Double(processorTime() - before) / reference)
        measured.processor = max(measured.processor, processor)
        measured.factor = max(measured.factor, limited(processor * max(1, load())))
        measured.time = MonotonicClock.now()
        return measured.factor
    }

    private static func limited(_ factor: Double) -> Double {
        min(max(factor, bounds.lowerBound), bounds.upperBound)
    }

    // Arithmetic, new memory, and calls of the kernel: an emulated machine is slow at each of them in another way.
    private static func work() {
        var number: UInt64 = 0x9E37_79B9_7F4A_7C15
        for _ in 0..<50_000 {
            number ^= number << 13
            number ^= number >> 7
            number ^= number << 17
        }
        let bytes = 4 << 20
        for _ in 0..<2 {
            let memory = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            guard let memory, memory != MAP_FAILED else { continue }
            for offset in stride(from: 0, to: bytes, by: 4096) {
                memory.storeBytes(of: number, toByteOffset: offset, as: UInt64.self)
            }
            munmap(memory, bytes)
        }
        for _ in 0..<2000 { _ = getppid() }
    }

    private static func processorTime() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    // How many threads there have been for each processor, over the last minute.
    private static func load() -> Double {
        var average = 0.0
        guard getloadavg(&average, 1) == 1 else { return 1 }
        return average / Double(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    }
}
