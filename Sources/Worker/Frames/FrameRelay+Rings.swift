import BusProtocol
import CaptureCore
import Delivery
import FrameRing
import Imaging
import LinuxIO

/// The rings of renditions: one for each rendition with readers, as long as it has readers and the stream runs.
extension FrameRelay {
    /// Makes another ring in the place of that one, if it is still in use; that one is never written to again.
    ///
    /// - Returns: false for that of the device's own frames, which goes with its stream only.
    func remakeRing(_ rendition: Rendition, _ id: String) -> Bool {
        if running?.ring.writer.plan.description.ring == id { return false }
        if let ring = retired[rendition], ring.id == id {
            ring.writer.close(.replaced)
            retired[rendition] = nil
            return true
        }
        guard let output = outputs.first(where: { $0.rendition == rendition }), let ring = output.ring, ring.id == id
        else { return true }
        ring.writer.close(.replaced)
        endRing(output)
        if let running { makeRing(output, running) }
        return true
    }

    func makeRing(_ output: RenditionOutput, _ run: CameraStream) {
        guard output.needsRing else { return endRing(output, isOver: false) }
        guard output.ring == nil else { return }
        if let ring = retired.removeValue(forKey: output.rendition) {
            if lender.isFree(ring.writer) {
                departed[ringName(output)] = nil
                return begin(ring, output, run)
            }
            ring.writer.close(.replaced)
        }
        if output.rendition == Rendition(.native) { return begin(RenditionRing(native: run.ring.writer), output, run) }
        let layout: FrameLayout
        let planes: [FrameHeader.Plane]?
        var bytes: Int
        switch output.making {
        case .idle, .impossible: return
        case .passThrough:
            (layout, planes) = (run.layout, run.payloadPlan.planes)
            bytes = run.payloadPlan.maximumBytes
            if output.rendition.encoding == .jpeg { bytes += JPEGStream.mostMissingBytes }
        case .converted(let work):
            layout = work.layout
            bytes = layout.totalBytes
            planes =
                layout.pixelFormat.isCompressed
                ? nil
                : layout.planes.map { FrameHeader.Plane(offset: $0.offset, stride: $0.stride, bytes: $0.bytes) }
        }
        let name = ringName(output)
        do throws(RingError) {
            let ring = try RenditionRing(
                device: device, output.rendition, stream: run.id, layout, planes: planes,
                orientation: output.orientation(run), bytes: bytes,
                lending: PayloadLender.slots,
                sequence: departed[name] ?? 0, isRecorded: output.isRecorded)
            departed[name] = nil
            begin(ring, output, run)
        } catch {
            output.ringError = .withoutRing("There is no memory for a ring of this picture: \(error)")
        }
    }

    private func begin(_ ring: RenditionRing, _ output: RenditionOutput, _ run: CameraStream) {
        output.ring = ring
        output.ringError = nil
        for topic in output.outputs where topic.subscribed.kind == .buffer {
            output.prepare(topic, device: device, run)
        }
        onRing?(output.rendition, ring.writer)
    }

    /// - Parameter isOver: nothing is ever written to it again.
    func endRing(_ output: RenditionOutput, isOver: Bool = true) {
        guard let ring = output.ring else { return }
        output.ring = nil
        for topic in output.outputs where topic.subscribed.kind == .buffer { topic.writer = nil }
        // That of the device's own frames goes with the stream.
        if !ring.isNative {
            if !isOver, running != nil, isCounted(ring.id) {
                retired[output.rendition] = ring
            } else {
                ring.writer.close(.ended)
            }
            lender.end(ring.writer)
        }
        if run != nil, ring.sequence > 0, departed.count < Self.maximumDeparted {
            departed[ringName(output)] = ring.sequence
        }
        onRing?(output.rendition, nil)
    }

    /// Ends the retired rings that count for nobody any more.
    func releaseRetired() {
        for (rendition, ring) in retired where !isCounted(ring.id) {
            ring.writer.close(.ended)
            retired[rendition] = nil
        }
    }

    // Its count continues if it returns within the stream.
    private func ringName(_ output: RenditionOutput) -> SubscribedTopic {
        SubscribedTopic(topic: [], text: output.rendition.description)
    }

    func put(
        _ frame: FrameJob, _ output: RenditionOutput, _ ring: RenditionRing
    ) -> RenditionRing.Publication? {
        guard let plan = run?.payloadPlan, let count = plan.count(bytesUsed: frame.bytesUsed) else { return nil }
        // Motion JPEG may leave its Huffman tables out.
        let picture = output.rendition.encoding == .jpeg ? frame.regions.first?.prefix(count) : nil
        let completion = picture.flatMap {
            JPEGStream.completion(of: UnsafeRawBufferPointer(rebasing: $0), orientation: orientation)
        }
        return ring.publish(
            frame.facts, dropped: output.dropped, timestampSource,
            bytes: count + (completion?.bytes ?? 0)
        ) { room in
            if let completion, let picture {
                completion.fill(UnsafeRawBufferPointer(rebasing: picture), into: room)
            } else {
                plan.copy(frame.regions, bytesUsed: frame.bytesUsed, into: room)
            }
        }
    }
}
