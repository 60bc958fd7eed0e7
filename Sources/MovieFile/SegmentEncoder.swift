import CaptureCore
import FFmpeg
import Glibc
import Imaging
import LinuxIO

/// Encodes movies anew, one behind the other into one file: H.264 and AAC. Pictures are upright, with square pixels and
/// the colours of the first segment.
enum SegmentEncoder {
    /// Nanoseconds: no movie lasts longer.
    private static let longest: Int64 = 10 * 365 * 86_400_000_000_000

    /// - Parameters:
    ///   - durations: how long they last, as far as that is known, nanoseconds.
    ///   - path: what a new file is called that never gets a name: it is there as long as its writer lives.
    /// - Returns: what has written it; nil if it was to end.
    static func encode(
        _ segments: [String], _ durations: [Int64], to path: String, _ preset: ExportPreset, _ progress: (Int64) -> Bool
    ) throws(MovieError) -> MovieWriter? {
        let plan: (configuration: MovieConfiguration, canvas: PictureCanvas)?
        do throws(MediaError) { plan = try self.plan(segments, preset) } catch { throw .media(error) }
        guard let (configuration, canvas) = plan else {
            throw .unsupported("sound alone that is not of one kind")
        }
        let writer = try MovieWriter(path, configuration, mode: 0o600, isNamed: false)
        writer.startSession(atSourceTime: 0)
        var (start, heard): (Int64, Int64) = (0, 0)
        for (number, segment) in segments.enumerated() {
            let span: FileSpan
            do throws(MediaError) { span = try FileSpan(segment) } catch { throw .media(error) }
            let length = span.length(noted: number < durations.count ? durations[number] : nil)
            let place = Place(start: start, beginning: span.beginning, end: length.map { start + min($0, longest) })
            guard try encode(segment, at: place, canvas, writer, &heard, progress) else { return nil }
            let lastPicture = writer.pictureEnd - (writer.picture?.frameDuration ?? 0)
            start = max(place.end ?? writer.statistics.recordedDuration, lastPicture + 1)
        }
        switch try writer.finishWriting() {
        case nil: return writer
        case .writeFailed(let code): throw .file(SystemError(code: code, operation: "write", subject: path))
        default: throw .file(SystemError(code: ENOSPC, operation: "write", subject: path))
        }
    }

    // As the first one is that has a picture, and with sound if one of them has any. nil: none has a picture.
    private static func plan(
        _ segments: [String], _ preset: ExportPreset
    ) throws(MediaError) -> (configuration: MovieConfiguration, canvas: PictureCanvas)? {
        var sound: (rate: Int, channels: Int)?
        for segment in segments where sound == nil { sound = try SoundReader.contents(segment) }
        var picture: VideoTrack?
        for segment in segments where picture == nil { picture = try MovieReader.contents(segment) }
        guard let track = picture else { return nil }
        let shape = track.uprightDimensions
        let most = preset.dimensions(for: shape)
        let isSmall = shape.width <= most.width && shape.height <= most.height
        let even = Dimensions(width: max(2, shape.width & ~1), height: max(2, shape.height & ~1))
        let canvas = try PictureCanvas(isSmall ? even : PictureCanvas.fit(shape, into: most), track.canvasColor)
        var layout = canvas.layout
        layout.description.frameDuration = track.frameRate.flatMap { FrameDuration($0.denominator, $0.numerator) }
        let settings = MovieFileType.mp4.recommendedVideoSettings(
            canvas.dimensions, frameRate: layout.description.frameDuration?.framesPerSecond)
        let audio = sound.map {
            MovieAudio(
                AudioFormat(.float32, rate: $0.rate, channels: $0.channels),
                MovieFileType.mp4.recommendedAudioSettings(rate: $0.rate, channels: $0.channels))
        }
        var configuration = MovieConfiguration(.mp4, video: .encoded(layout, settings), audio: audio)
        configuration.creationDate = try segments.first.flatMap { (path) throws(MediaError) in
            try MovieReader.creationDate(path)
        }
        return (configuration, canvas)
    }

    // False: it was to end. So far there is sound, nanoseconds.
    private static func encode(
        _ segment: String, at place: Place, _ canvas: PictureCanvas, _ writer: MovieWriter, _ heard: inout Int64,
        _ progress: (Int64) -> Bool
    ) throws(MovieError) -> Bool {
        // Another shape leaves borders.
        canvas.clear()
        var pictures: MovieReader?
        var sounds: SoundReader?
        do throws(MediaError) {
            if try MovieReader.contents(segment) != nil { pictures = try MovieReader(segment, delivers: .pictures) }
            if let format = writer.configuration.audio?.format, try SoundReader.contents(segment) != nil {
                sounds = try SoundReader(segment, as: format)
            }
        } catch {
            throw .media(error)
        }
        var picture = try next(pictures)
        var sound = try next(sounds)
        if let first = sound?.time {
            try beSilent(from: heard, until: max(place.start, try place.time(of: first)), writer)
        }
        while writer.end == nil {
            if let pictures, let time = picture, time <= sound?.time ?? .max {
                do throws(MediaError) { try canvas.draw(pictures) } catch { throw .media(error) }
                try writer.append(canvas.bytes, at: try place.time(of: time))
                picture = try next(pictures, after: time)
            } else if let piece = sound {
                let time = try place.time(of: piece.time)
                if let (samples, begin) = place.heard(piece.samples, at: time, writer.sound) {
                    try writer.append(sound: samples, at: begin)
                    heard = begin + (writer.sound?.duration(of: samples) ?? 0)
                }
                sound = try next(sounds)
            } else {
                return true
            }
            guard progress(writer.statistics.recordedDuration) else { return false }
        }
        return true
    }

    // The encoder makes up for a short hole by and by: until then the sound would be out of step.
    private static func beSilent(
        from begin: Int64, until end: Int64, _ writer: MovieWriter
    ) throws(MovieError) {
        guard let format = writer.configuration.audio?.format, begin < end, end - begin <= longestSilence else {
            return
        }
        let step = format.rate / 10
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: step * format.frameBytes, alignment: 16)
        defer { piece.deallocate() }
        piece.initializeMemory(as: UInt8.self, repeating: 0)
        let count = Int((end - begin) * Int64(format.rate) / 1_000_000_000)
        for first in stride(from: 0, to: count, by: step) {
            let samples = piece[..<(min(step, count - first) * format.frameBytes)]
            let time = begin + Int64(first) * 1_000_000_000 / Int64(format.rate)
            try writer.append(sound: UnsafeRawBufferPointer(rebasing: samples), at: time)
        }
    }

    /// Nanoseconds; a longer one the encoder makes by itself.
    private static let longestSilence: Int64 = 3_600_000_000_000

    /// Where a segment lies in the movie.
    private struct Place {
        /// Nanoseconds of the movie.
        var start: Int64
        /// On the segment's own clock.
        var beginning: Int64
        /// Nanoseconds of the movie; nil: it isn't known.
        var end: Int64?

        // What a file says of its times may be anything within a hundred years.
        func time(of time: Int64) throws(MovieError) -> Int64 {
            guard abs(time - beginning) < longest, start < longest else {
                throw .media(MediaError("av_read_frame", message: "a time outside of the range of movies"))
            }
            return start + time - beginning
        }

        // Encoded sound begins before it is heard, and ends later.
        func heard(
            _ samples: UnsafeRawBufferPointer, at time: Int64, _ sound: SoundTrack?
        ) -> (UnsafeRawBufferPointer, time: Int64)? {
            guard let format = sound?.format else { return nil }
            let count = samples.count / format.frameBytes
            func moment(_ limit: Int64) -> Int {
                Int(min(max(0, Double(limit - time) * Double(format.rate) / 1e9), Double(count)).rounded())
            }
            let range = moment(start)..<max(moment(start), end.map(moment) ?? count)
            guard !range.isEmpty else { return nil }
            let bytes = samples[range.lowerBound * format.frameBytes..<range.upperBound * format.frameBytes]
            return (
                UnsafeRawBufferPointer(rebasing: bytes),
                time + Int64(range.lowerBound) * 1_000_000_000 / Int64(format.rate)
            )
        }
    }

    private static func next(_ pictures: MovieReader?, after time: Int64 = 0) throws(MovieError) -> Int64? {
        do throws(MediaError) {
            // Where the file doesn't say, it follows at once.
            return try pictures?.next().map { $0.time ?? time + 1 }
        } catch {
            throw .media(error)
        }
    }

    private static func next(
        _ sounds: SoundReader?
    ) throws(MovieError) -> (time: Int64, samples: UnsafeRawBufferPointer)? {
        do throws(MediaError) { return try sounds?.next() } catch { throw .media(error) }
    }
}
