import CaptureCore
import FFmpeg
import Glibc
import LinuxIO

/// Encodes movies anew, one behind the other into one file: H.264 and AAC.
enum SegmentEncoder {
    /// - Returns: false if it was to end; there is no file then.
    static func encode(
        _ segments: [String], to path: String, _ preset: ExportPreset, _ progress: (Int64) -> Bool
    ) throws(MovieError) -> Bool {
        let configuration: MovieConfiguration
        let canvas: PictureCanvas
        do throws(MediaError) {
            (configuration, canvas) = try plan(segments, preset)
        } catch {
            throw .media(error)
        }
        let writer = try MovieWriter(path, configuration)
        do throws(MovieError) {
            writer.startSession(atSourceTime: 0)
            for segment in segments {
                guard try encode(segment, canvas, writer, progress) else {
                    writer.cancelWriting()
                    return false
                }
            }
            switch try writer.finishWriting() {
            case nil: return true
            case .writeFailed(let code): throw .file(SystemError(code: code, operation: "write", subject: path))
            default: throw .file(SystemError(code: ENOSPC, operation: "write", subject: path))
            }
        } catch {
            writer.cancelWriting()
            // Also one that could be finished.
            unlink(path)
            throw error
        }
    }

    // As the first one is, and with sound if one of them has any.
    private static func plan(
        _ segments: [String], _ preset: ExportPreset
    ) throws(MediaError) -> (MovieConfiguration, PictureCanvas) {
        var sound: (rate: Int, channels: Int)?
        for segment in segments where sound == nil { sound = try SoundReader.contents(segment) }
        let track = try MovieReader(segments[0], delivers: .pictures).track
        let shape = Dimensions(width: track.width, height: track.height)
        let most = preset.dimensions
        let isSmall = shape.width <= most.width && shape.height <= most.height
        let even = Dimensions(width: max(2, shape.width & ~1), height: max(2, shape.height & ~1))
        let canvas = try PictureCanvas(isSmall ? even : PictureCanvas.fit(shape, into: most))
        let told = track.frameRate.map { Double($0.numerator) / Double($0.denominator) } ?? 30
        let frameRate = min(max(told, 1), 240)
        let settings = FileType.mp4.recommendedVideoSettings(canvas.dimensions, frameRate: frameRate)
        let audio = sound.map {
            MovieAudio(
                AudioFormat(.float32, rate: $0.rate, channels: $0.channels),
                FileType.mp4.recommendedAudioSettings(rate: $0.rate, channels: $0.channels))
        }
        return (
            MovieConfiguration(.mp4, video: .encoded(canvas.layout, settings), audio: audio, frameRate: frameRate),
            canvas
        )
    }

    // False: it was to end.
    private static func encode(
        _ segment: String, _ canvas: PictureCanvas, _ writer: MovieWriter, _ progress: (Int64) -> Bool
    ) throws(MovieError) -> Bool {
        let start = writer.statistics.recordedDuration
        let pictures: MovieReader
        var sounds: SoundReader?
        do throws(MediaError) {
            pictures = try MovieReader(segment, delivers: .pictures)
            if let format = writer.configuration.audio?.format, try SoundReader.contents(segment) != nil {
                sounds = try SoundReader(segment, as: format)
            }
        } catch {
            throw .media(error)
        }
        var picture = try next(pictures)
        var sound = try next(sounds)
        // One begins at the segment's beginning, and the other as much later as it does.
        let origin = min(picture ?? .max, sound?.time ?? .max)
        while writer.end == nil {
            if let time = picture, time <= sound?.time ?? .max {
                do throws(MediaError) { try canvas.draw(pictures, range: .limited) } catch { throw .media(error) }
                try writer.append(canvas.bytes, at: start + time - origin)
                picture = try next(pictures, after: time)
            } else if let piece = sound {
                try writer.append(sound: piece.samples, at: start + piece.time - origin)
                sound = try next(sounds)
            } else {
                return true
            }
            guard progress(writer.statistics.recordedDuration) else { return false }
        }
        return true
    }

    private static func next(_ pictures: MovieReader, after time: Int64 = 0) throws(MovieError) -> Int64? {
        do throws(MediaError) {
            // Where the file doesn't say, it follows at once.
            return try pictures.next().map { $0.time ?? time + 1 }
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
