import CFFmpeg
import Glibc

/// Lets libavformat read from and write to an open descriptor of a plain file, at positions of its own (`pread(2)`,
/// `pwrite(2)`): what the system says of a failure is kept, and it is up to the owner when all is written and when all
/// of it is synced.
final class DescriptorStream {
    private let descriptor: Int32
    private let kept: Int64
    private let syncInterval: Int64?
    /// Bytes that were written since the file was synced.
    private var unsynced: Int64 = 0
    private var position: Int64 = 0
    private var storage: UnsafeMutablePointer<AVIOContext>?

    /// Where the file ends, as far as this stream knows; reading goes no further.
    private(set) var end: Int64
    /// The first error number (`errno`) of a write or sync. Nothing is written after it.
    private(set) var failure: Int32?

    private static let bufferBytes = 1 << 16

    /// - Parameters:
    ///   - descriptor: open as long as this lives; not owned.
    ///   - length: so much of the file there is already.
    ///   - kept: what is written before that position is thrown away, since the file has it already.
    ///   - syncInterval: after so many bytes they are synced, so that no more of them wait for the disk in the end;
    ///     nil: never.
    init(
        _ descriptor: Int32, writes: Bool, length: Int64 = 0, keeping kept: Int64 = 0,
        syncsEvery syncInterval: Int64? = nil
    ) throws(MediaError) {
        self.descriptor = descriptor
        self.kept = kept
        self.syncInterval = syncInterval
        end = length
        guard let buffer = av_malloc(Self.bufferBytes) else { throw MediaError("av_malloc", cffmpeg_no_memory()) }
        let opaque = Unmanaged.passUnretained(self).toOpaque()
        storage = avio_alloc_context(
            buffer.assumingMemoryBound(to: UInt8.self), Int32(Self.bufferBytes), writes ? 1 : 0, opaque,
            { opaque, bytes, count in DescriptorStream.of(opaque)?.read(bytes, Int(count)) ?? cffmpeg_end_of_file() },
            { opaque, bytes, count in DescriptorStream.of(opaque)?.write(bytes, Int(count)) ?? cffmpeg_end_of_file() },
            { opaque, offset, whence in DescriptorStream.of(opaque)?.seek(offset, whence) ?? -1 })
        guard storage != nil else {
            av_free(buffer)
            throw MediaError("avio_alloc_context", cffmpeg_no_memory())
        }
        // A fragment is one large piece: it is not to be copied once more, bit by bit.
        if writes { storage?.pointee.direct = 1 }
    }

    deinit {
        if let storage { av_free(storage.pointee.buffer) }
        avio_context_free(&storage)
    }

    var context: UnsafeMutablePointer<AVIOContext>? { storage }

    private static func of(_ opaque: UnsafeMutableRawPointer?) -> DescriptorStream? {
        opaque.map { Unmanaged<DescriptorStream>.fromOpaque($0).takeUnretainedValue() }
    }

    private func read(_ bytes: UnsafeMutablePointer<UInt8>?, _ wanted: Int) -> Int32 {
        let count = min(Int64(wanted), end - position)
        guard count > 0 else { return cffmpeg_end_of_file() }
        while true {
            let result = pread(descriptor, bytes, Int(count), Int(position))
            if result > 0 {
                position += Int64(result)
                return Int32(result)
            }
            if result == 0 { return cffmpeg_end_of_file() }
            let code = errno
            if code != EINTR { return cffmpeg_error(code) }
        }
    }

    private func write(_ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int) -> Int32 {
        if let failure { return cffmpeg_error(failure) }
        guard let bytes else { return 0 }
        var done = Int(min(max(0, kept - position), Int64(count)))
        while done < count {
            let result = pwrite(descriptor, bytes + done, count - done, Int(position) + done)
            if result > 0 {
                done += result
                continue
            }
            let code = result == 0 ? EIO : errno
            if code == EINTR { continue }
            failure = code
            return cffmpeg_error(code)
        }
        position += Int64(count)
        end = max(end, position)
        sync(after: count)
        return failure.map(cffmpeg_error) ?? Int32(count)
    }

    private func sync(after count: Int) {
        unsynced += Int64(count)
        guard let syncInterval, unsynced >= syncInterval else { return }
        unsynced = 0
        while fdatasync(descriptor) != 0 {
            let code = errno
            if code == EINTR { continue }
            failure = code
            return
        }
    }

    private func seek(_ offset: Int64, _ whence: Int32) -> Int64 {
        let base: Int64
        switch whence & ~AVSEEK_FORCE {
        case AVSEEK_SIZE: return end
        case SEEK_CUR: base = position
        case SEEK_END: base = end
        default: base = 0
        }
        // Offsets are read from files, too.
        let (target, isFar) = base.addingReportingOverflow(offset)
        guard !isFar, target >= 0 else { return Int64(cffmpeg_error(EINVAL)) }
        position = target
        return target
    }
}
