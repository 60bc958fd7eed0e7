import Glibc
import Testing

/// Memory that ends where the next page may not be touched, so that one byte read too many ends the test program.
final class GuardedMemory {
    let bytes: UnsafeMutableRawBufferPointer
    private let mapping: UnsafeMutableRawPointer
    private let length: Int

    init(count: Int) throws {
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        let pages = (max(count, 1) + page - 1) / page * page
        length = pages + page
        let mapped = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        mapping = try #require(mapped == MAP_FAILED ? nil : mapped)
        #expect(mprotect(mapping + pages, page, PROT_NONE) == 0)
        bytes = UnsafeMutableRawBufferPointer(start: mapping + pages - count, count: count)
    }

    convenience init(_ contents: [UInt8]) throws {
        try self.init(count: contents.count)
        bytes.copyBytes(from: contents)
    }

    deinit { munmap(mapping, length) }

    /// Lets the memory be read while it surely exists.
    func read<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(bytes)) }
    }
}
