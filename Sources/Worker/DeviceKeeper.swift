import BusProtocol
import CaptureCore
import CaptureSources
import LinuxIO

/// The device and what is to be set at it. Lives on the device thread.
///
/// Another program may change a camera while it is closed, and some do while it is open; so what was last set by order is
/// compared and put back whenever the device is opened and before it streams.
final class DeviceKeeper {
    let source: any VideoSource
    let device: String
    private(set) var description: DeviceDescription?
    /// What was read last.
    private(set) var snapshot: DeviceSnapshot?
    /// Rises with every change that was made by order, and with every one that was taken back.
    var generation: UInt64
    /// nil: nothing was ever set by order.
    var committed: CommittedConfiguration?
    /// The committed format could not be put back when the device was opened.
    private var isFormatOwed = false

    init(_ source: any VideoSource, device: String, committed: CommittedConfiguration?) {
        self.source = source
        self.device = device
        self.committed = committed
        generation = committed?.generation ?? 0
    }

    /// Opens the device and puts back what was last set.
    func open() throws(SourceError) -> DeviceSnapshot {
        description = try source.open()
        do {
            isFormatOwed = !(try putBackCommittedFormat())
            try putBackCommittedControls()
            return try read()
        } catch {
            source.close()
            throw error
        }
    }

    func close() {
        source.close()
        // A camera that nobody uses is to cost nothing.
        ProcessMemory.giveBack()
    }

    /// Starts the stream with what was last set.
    func start() throws(SourceError) -> any FrameStream {
        if isFormatOwed, let committed {
            _ = try source.setFormat(committed.format)
            if let duration = committed.frameDuration { _ = try source.setFrameDuration(duration) }
            isFormatOwed = false
        }
        return try source.startStreaming()
    }

    func stop() throws(SourceError) { try source.stopStreaming() }

    /// How the open device is set now.
    func read() throws(SourceError) -> DeviceSnapshot {
        let controls = try source.controls()
        description?.controls = controls
        let description = description ?? DeviceDescription(identity: source.identity, formats: [], controls: controls)
        let format = try source.activeFormat()
        let snapshot = DeviceSnapshot(
            description: description,
            configuration: DeviceConfiguration(
                formatID: description.formatID(of: format), format: format, frameDuration: try source.frameDuration(),
                controls: try source.controlValues()),
            asOf: MonotonicClock.now())
        self.snapshot = snapshot
        return snapshot
    }

    /// - Returns: false when the device doesn't take it now: then it is owed.
    private func putBackCommittedFormat() throws(SourceError) -> Bool {
        guard let committed else { return true }
        do {
            if try source.activeFormat() != committed.format { _ = try source.setFormat(committed.format) }
            if let duration = committed.frameDuration, try source.frameDuration() != duration {
                _ = try source.setFrameDuration(duration)
            }
            return true
        } catch  where error.kind != .disconnected {
            return false
        }
    }

    // A control that can't be set now (its automatic mode may be on) doesn't keep the others from being set.
    private func putBackCommittedControls() throws(SourceError) {
        guard let committed, !committed.controls.isEmpty else { return }
        let present = try source.controlValues()
        for control in committed.controls where present[control.name] != control.value {
            do {
                try source.setControl(control.name, to: control.value)
            } catch  where error.kind != .disconnected {}
        }
    }
}

extension DeviceDescription {
    /// The row of the table that has this format; nil if none has.
    func formatID(of selection: FormatSelection) -> String? {
        formats.first { format in
            format.pixelFormat == selection.pixelFormat
                && (format.sizes?.contains(selection.dimensions) ?? (format.dimensions == selection.dimensions))
        }?.id
    }
}
