package import ALSA
public import CaptureCore
import Glibc

/// Finds the microphones of the machine: the PCMs of the kernel's sound cards that can be recorded from. What ALSA
/// makes of them in user space (`default`, `plug`, `dsnoop`) is none.
public enum ALSADiscovery {
    /// Looks at every card of `/sys/class/sound` through its controls, which disturbs no one who records from it.
    public static func survey() -> (microphones: [MicrophoneFacts], unreadable: [CameraSurvey.Unreadable]) {
        survey(sysfs: "/sys") { card throws(ALSAError) in try SoundCard(number: card.number) }
    }

    /// - Parameters:
    ///   - sysfs: where the kernel shows its devices.
    ///   - look: asks a card what it is.
    package static func survey(
        sysfs: String, look: (ALSASysfsCard) throws(ALSAError) -> SoundCard
    ) -> (microphones: [MicrophoneFacts], unreadable: [CameraSurvey.Unreadable]) {
        var microphones: [MicrophoneFacts] = []
        var unreadable: [CameraSurvey.Unreadable] = []
        let before = ALSASysfsCard.all(sysfs: sysfs)
        for card in before where !card.captures.isEmpty {
            do throws(ALSAError) {
                microphones += facts(card, try look(card))
            } catch {
                let error = SourceError(error, .opening)
                // A card that went away meanwhile is no finding.
                guard error.kind != .disconnected else { continue }
                unreadable.append(
                    .init(
                        node: card.controlNode, index: card.number, device: card.device, why: error.description))
            }
        }
        // One that is gone by now may be one that was seen in its new place too: it must not pass for two.
        let present = Dictionary(ALSASysfsCard.all(sysfs: sysfs).map { ($0.number, $0.device) }) { first, _ in first }
        microphones.removeAll { present[$0.card] != $0.device }
        return (microphones, unreadable)
    }

    private static func facts(_ card: ALSASysfsCard, _ said: SoundCard) -> [MicrophoneFacts] {
        said.captureDevices.filter { card.captures.contains($0.device) }.map { pcm in
            MicrophoneFacts(
                node: card.node(pcm.device), pcm: "hw:CARD=\(said.id),DEV=\(pcm.device)", card: card.number,
                cardID: said.id, index: pcm.device, device: card.device, usb: card.usb, cardName: said.name,
                name: pcm.name, driver: said.driver, bus: card.bus)
        }
    }

    /// A microphone as it is now, at the place where it was seen, under whatever number; other cards are not opened.
    ///
    /// - Parameter onRequest: told at the beginning and at the end of each look at a card.
    /// - Returns: nil when it isn't there.
    static func find(
        _ microphone: MicrophoneFacts, onRequest: RequestObserver
    ) throws(SourceError) -> MicrophoneFacts? {
        for card in ALSASysfsCard.all(sysfs: "/sys")
        where card.device == microphone.device && card.usb == microphone.usb
            && card.captures.contains(microphone.index)
        {
            onRequest()
            defer { onRequest() }
            do throws(ALSAError) {
                let found = facts(card, try SoundCard(number: card.number)).first { $0.index == microphone.index }
                if let found, found.driver == microphone.driver, found.cardName == microphone.cardName { return found }
            } catch {
                let error = SourceError(error, .opening)
                if error.kind != .disconnected { throw error }
            }
        }
        return nil
    }
}

extension CameraSurvey {
    /// The cameras and the microphones of this machine.
    public static func ofThisMachine() -> CameraSurvey {
        var survey = V4L2Discovery.survey()
        (survey.microphones, survey.unreadableSound) = ALSADiscovery.survey()
        return survey
    }
}
