import BusProtocol
import CaptureCore

extension DeviceResolver {
    /// The actions that an action with a rig stands for: the same for each of its devices, in their order. Any other
    /// action stands for itself.
    ///
    /// - Parameter path: the action's place in the request.
    /// - Throws: `deviceNotFound` when an input is to be added that is neither a device nor a rig, or a device of a rig
    ///     is not there.
    func expanded(
        _ action: SessionAction, _ path: String
    ) throws(BusError) -> [(action: SessionAction, path: String)] {
        switch action {
        case .addInput(let input):
            try devices(named: input.device).map { device in
                var input = input
                input.device = device
                return (.addInput(input), path)
            }
        case .removeInput(let name):
            try devices(ofRig: name)?.map { (.removeInput(device: $0), path) } ?? [(action, path)]
        case .setInput(let name, let format, let rate, let source):
            try devices(ofRig: name)?.map {
                (.setInput(device: $0, activeFormat: format, frameRate: rate, preferredDataSource: source), path)
            } ?? [(action, path)]
        case .connection(let name?, let output, let orientation, let mirrored, let isEnabled, let stabilization):
            try devices(ofRig: name)?.map { device in
                let connection = SessionAction.connection(
                    input: device, output: output, videoOrientation: orientation, videoMirrored: mirrored,
                    isEnabled: isEnabled, preferredVideoStabilizationMode: stabilization)
                return (connection, path)
            } ?? [(action, path)]
        case .connection, .addOutput, .removeOutput, .setOutput, .preset, .priority: [(action, path)]
        }
    }
}
