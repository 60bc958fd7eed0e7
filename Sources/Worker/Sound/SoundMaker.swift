import BusProtocol
import CaptureCore
import CaptureSources

/// How one rendition comes of a microphone's periods.
final class SoundMaker {
    /// What came of a period.
    typealias Piece = SoundRenditionWork.Piece

    private enum Making {
        /// The device's own bytes.
        case passThrough
        case converted(SoundRenditionWork)
        case impossible(BusError)
    }

    /// What comes out; of what can't be made, what goes in.
    let format: SoundFormat
    private var making: Making

    init(_ rendition: SoundRendition, _ source: SoundFormat) {
        var made = source
        do throws(BusError) {
            if SoundRenditionWork.isPassThrough(rendition, source) {
                making = .passThrough
            } else {
                let work = try SoundRenditionWork(rendition, from: source)
                (made.sampleFormat, made.rate, made.channels) = (work.sampleFormat, work.rate, work.channels)
                making = .converted(work)
            }
        } catch {
            making = .impossible(error)
        }
        format = made
    }

    /// What comes out is what goes in.
    var isPassThrough: Bool { if case .passThrough = making { true } else { false } }

    /// Why there is none, if so.
    var error: BusError? { if case .impossible(let error) = making { error } else { nil } }

    /// - Parameter native: the device's own bytes.
    /// - Returns: nil: nothing has come out yet, or ever will (``error``). Good until the next period.
    func make(_ period: SoundPeriod, _ native: UnsafeRawBufferPointer) -> Piece? {
        switch making {
        case .impossible: return nil
        case .passThrough:
            return Piece(
                firstFrame: period.firstFrame, frames: period.frames, monotonic: period.monotonicTime, samples: native)
        case .converted(let work):
            do throws(BusError) {
                return try work.convert(native, period)
            } catch {
                making = .impossible(error)
                return nil
            }
        }
    }
}
