import BusProtocol
import Glibc
import LinuxIO

/// A WAV file that grows, with a header that is right whenever it is looked at, to within a second.
final class WaveFile {
    /// What is in it: as a microphone gives it, but that 24 bits lie in three bytes.
    struct Format: Hashable {
        var sampleFormat: String
        var rate: Int
        var channels: Int

        init(_ header: SoundHeader) {
            (sampleFormat, rate, channels) = (header.sampleFormat, header.rate, header.channels)
        }

        var bytesPerSample: Int { sampleFormat == "s24in32" ? 3 : SoundHeader.bytesPerSample(sampleFormat) }
        var bytesPerFrame: Int { bytesPerSample * channels }
        /// WAVE_FORMAT_IEEE_FLOAT; else PCM.
        var isFloat: Bool { sampleFormat == "f32" }
    }

    let path: String
    let format: Format
    private let file: FileDescriptor
    private let headerBytes: Int
    private(set) var dataBytes = 0
    private var toldBytes = 0

    /// A WAV file counts its bytes in 32 bits.
    private static let maximumBytes = Int(UInt32.max) - 64

    /// Makes the file, or empties the one that is there.
    ///
    /// - Throws: ``Failure``
    init(_ path: String, _ format: Format) throws {
        (self.path, self.format) = (path, format)
        do throws(SystemError) {
            file = try FileDescriptor(opening: path, O_RDWR | O_CREAT | O_TRUNC, mode: 0o666)
        } catch {
            throw Failure(status: ExitStatus.refused, description: "\(error)")
        }
        let header = Self.header(format, dataBytes: 0)
        headerBytes = header.count
        try write(header, at: 0)
    }

    /// Adds samples.
    ///
    /// - Throws: ``Failure`` when the disk is full, or the file as large as a WAV file can be.
    func append(_ samples: UnsafeRawBufferPointer) throws {
        if format.sampleFormat == "s24in32" {
            try appendBytes(Self.packed(samples))
        } else {
            try appendBytes(Array(samples))
        }
        // A program that is killed leaves a header that lacks a second at most.
        if dataBytes - toldBytes >= format.rate * format.bytesPerFrame { try finish() }
    }

    /// Adds so many frames of silence.
    func appendSilence(frames: Int) throws {
        try appendBytes([UInt8](repeating: 0, count: frames * format.bytesPerFrame))
    }

    /// Makes the header right.
    func finish() throws {
        try write(Self.header(format, dataBytes: dataBytes), at: 0)
        toldBytes = dataBytes
    }

    private func appendBytes(_ bytes: [UInt8]) throws {
        guard dataBytes + bytes.count <= Self.maximumBytes else {
            throw Failure(
                status: ExitStatus.refused, description: "\(path): this WAV file is full; the format holds 4 GiB")
        }
        try write(bytes, at: headerBytes + dataBytes)
        dataBytes += bytes.count
    }

    private func write(_ bytes: [UInt8], at offset: Int) throws {
        try bytes.withUnsafeBytes { buffer in
            var done = 0
            while done < buffer.count {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[done...])
                let count = pwrite(file.rawValue, rest.baseAddress, rest.count, off_t(offset + done))
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    throw Failure(
                        status: ExitStatus.refused, description: "\(path): \(String(cString: strerror(errno)))")
                }
                done += count
            }
        }
    }

    // The low three of four bytes.
    static func packed(_ samples: UnsafeRawBufferPointer) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(samples.count / 4 * 3)
        for sample in stride(from: 0, to: samples.count - 3, by: 4) {
            bytes.append(contentsOf: samples[sample..<sample + 3])
        }
        return bytes
    }

    /// RIFF's. What is not PCM has an extension, here an empty one, and a chunk with the number of frames.
    static func header(_ format: Format, dataBytes: Int) -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        func chunk(_ name: String, _ bytes: [UInt8]) -> [UInt8] { Array(name.utf8) + number(bytes.count, 4) + bytes }
        var description = number(format.isFloat ? 3 : 1, 2) + number(format.channels, 2)
        description += number(format.rate, 4) + number(format.rate * format.bytesPerFrame, 4)
        description += number(format.bytesPerFrame, 2) + number(8 * format.bytesPerSample, 2)
        var chunks = chunk("fmt ", description)
        if format.isFloat {
            chunks = chunk("fmt ", description + number(0, 2))
            chunks += chunk("fact", number(dataBytes / max(format.bytesPerFrame, 1), 4))
        }
        chunks += Array("data".utf8) + number(dataBytes, 4)
        return Array("RIFF".utf8) + number(4 + chunks.count + dataBytes, 4) + Array("WAVE".utf8) + chunks
    }
}
