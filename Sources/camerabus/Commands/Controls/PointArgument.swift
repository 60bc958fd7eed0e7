import ArgumentParser
import BusClient

/// `0.5,0.5`: a point of the picture.
struct PointArgument: Hashable {
    let point: PreviewLayout.Point

    /// - Throws: what is wrong with it.
    init(reading argument: String) throws {
        let parts = argument.split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
        guard parts.count == 2, let x = parts[0], let y = parts[1], (0...1).contains(x), (0...1).contains(y) else {
            throw ValidationError("a point is two numbers from 0 to 1, x,y: 0.5,0.5 is the middle")
        }
        point = PreviewLayout.Point(x: x, y: y)
    }
}

/// The help text of a point.
let pointHelp = ArgumentHelp(
    "A point in the camera's own picture: 0,0 is the top left corner, 1,1 the bottom right.", valueName: "x,y")
