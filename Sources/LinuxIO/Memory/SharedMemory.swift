import CLinux
import Glibc

/// Memory that other processes may map to read, and nobody can write to but through the mapping that this made
/// (`memfd_create(2)`, sealed with `F_SEAL_SHRINK`, `F_SEAL_GROW`, `F_SEAL_FUTURE_WRITE`, `F_SEAL_SEAL`).
///
/// It is unmapped when this ends, and given back to the kernel when no reader has it mapped any more either.
public final class SharedMemory: @unchecked Sendable {
    // The mapping doesn't move; who writes where is for its users to settle.
    public let bytes: UnsafeMutableRawBufferPointer
    /// Its readers. As long as somebody has this, the memory stays.
    public let readers: SharedMemoryReaders

    /// - Parameters:
    ///   - name: shown in `/proc/<pid>/maps`.
    ///   - count: bytes; whole pages are taken.
    public init(name: String, count: Int) throws(SystemError) {
        guard count > 0 else { throw SystemError(code: EINVAL, operation: "memfd_create", subject: name) }
        let file = FileDescriptor(owning: try check("memfd_create", name) { clinux_memfd(name) })
        try check("ftruncate", name) { ftruncate(file.rawValue, count) }
        let mapped = mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, file.rawValue, 0)
        guard let mapped, mapped != MAP_FAILED else {
            throw SystemError(code: errno, operation: "mmap", subject: name)
        }
        do throws(SystemError) {
            // Only now: what is mapped before the seal stays writable, and nothing else ever will be.
            try check("fcntl", name) { clinux_seal_for_readers(file.rawValue) }
            readers = SharedMemoryReaders(
                FileDescriptor(owning: try check("open", name) { clinux_reopen_read_only(file.rawValue) }))
        } catch {
            munmap(mapped, count)
            throw error
        }
        bytes = UnsafeMutableRawBufferPointer(start: mapped, count: count)
    }

    deinit { munmap(bytes.baseAddress, bytes.count) }

    /// To be mapped by readers in this process: open for reading only.
    public var readerDescriptor: Int32 { readers.descriptor.rawValue }
}

/// The readers of shared memory in other processes. It keeps the memory, and no mapping.
public final class SharedMemoryReaders: Sendable {
    fileprivate let descriptor: FileDescriptor

    fileprivate init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }

    /// A descriptor for reading only, to be sent to another process. Each process needs one of its own:
    /// ``isEmpty`` does not see who has this process's.
    public func open() throws(SystemError) -> FileDescriptor {
        FileDescriptor(owning: try check("open") { clinux_reopen_read_only(descriptor.rawValue) })
    }

    /// Whether nobody has a descriptor of ``open()``, or a mapping that was made with it; nil: the kernel cannot say.
    /// The kernel does not count descriptors with O_PATH, which can be opened again: no permission may depend on this.
    public var isEmpty: Bool? {
        let result = clinux_is_shared(descriptor.rawValue)
        return result < 0 ? nil : result == 0
    }
}

/// Memory of another process, mapped to be read.
public final class SharedMemoryView: @unchecked Sendable {
    // Read only; what is read may change at any time.
    public let bytes: UnsafeRawBufferPointer

    /// Maps the whole file. The descriptor isn't needed any more afterwards.
    ///
    /// - Throws: `EINVAL` for a file that may become shorter: reading what is gone would end the process (`SIGBUS`).
    public init(_ descriptor: Int32) throws(SystemError) {
        guard clinux_cannot_shrink(descriptor) == 1 else {
            throw SystemError(code: EINVAL, operation: "fcntl", subject: "memory that is not sealed")
        }
        var status = stat()
        try check("fstat") { fstat(descriptor, &status) }
        let count = Int(status.st_size)
        guard count > 0 else { throw SystemError(code: EINVAL, operation: "fstat", subject: "empty memory") }
        let mapped = mmap(nil, count, PROT_READ, MAP_SHARED, descriptor, 0)
        guard let mapped, mapped != MAP_FAILED else { throw SystemError(code: errno, operation: "mmap") }
        bytes = UnsafeRawBufferPointer(start: mapped, count: count)
    }

    deinit { munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count) }
}

/// Words in memory that several processes share, little-endian and naturally aligned.
public enum SharedWord {
    /// What was written before the value that this reads was stored is seen after it.
    @inline(__always)
    public static func load32(_ word: UnsafeRawPointer) -> UInt32 { UInt32(littleEndian: clinux_load_acquire_32(word)) }

    /// As ``load32(_:)``.
    @inline(__always)
    public static func load64(_ word: UnsafeRawPointer) -> UInt64 { UInt64(littleEndian: clinux_load_acquire_64(word)) }

    /// In no order with anything else.
    @inline(__always)
    public static func loadRelaxed64(_ word: UnsafeRawPointer) -> UInt64 {
        UInt64(littleEndian: clinux_load_relaxed_64(word))
    }

    /// Whoever loads this value sees what was written before.
    @inline(__always)
    public static func store32(_ word: UnsafeMutableRawPointer, _ value: UInt32) {
        clinux_store_release_32(word, value.littleEndian)
    }

    /// As ``store32(_:_:)``.
    @inline(__always)
    public static func store64(_ word: UnsafeMutableRawPointer, _ value: UInt64) {
        clinux_store_release_64(word, value.littleEndian)
    }

    /// In no order with anything else.
    @inline(__always)
    public static func storeRelaxed64(_ word: UnsafeMutableRawPointer, _ value: UInt64) {
        clinux_store_relaxed_64(word, value.littleEndian)
    }

    /// What was read before is not read after it.
    @inline(__always)
    public static func readsAreDone() { clinux_fence_acquire() }

    /// Nothing moves across it, in either direction.
    @inline(__always)
    public static func fence() { clinux_fence_full() }
}

/// A word in shared memory that can be waited on, also through a mapping that can only be read (`futex(2)`).
public enum Futex {
    /// Waits until the word has changed from that value.
    ///
    /// - Parameter deadline: CLOCK_MONOTONIC, nanoseconds.
    /// - Returns: false when the time is over. True may also mean nothing: look, and wait again.
    public static func wait(_ word: UnsafeRawPointer, while value: UInt32, until deadline: Int64) -> Bool {
        if clinux_futex_wait(word, value.littleEndian, max(0, deadline)) == 0 { return true }
        return errno != ETIMEDOUT
    }

    /// Wakes all who wait on the word, in all processes.
    public static func wakeAll(_ word: UnsafeRawPointer) { _ = clinux_futex_wake_all(word) }
}
