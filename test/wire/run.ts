/**
 * Relays each recorded stream split at every byte, and broken off at every byte: `bun test/wire/run.ts`. Prints the
 * number of tries and every difference. Exit code 1 if there is a difference.
 */
import { createPlayer } from "./play.ts";
import { RECORDINGS } from "./recording.ts";

let plays = 0;
const wrong: string[] = [];

for (const recording of RECORDINGS) {
	const { name, bytes } = recording;
	const player = createPlayer(recording);
	const whole = JSON.stringify(await player.play());
	for (let at = 1; at < bytes.length; at += 1) {
		plays += 2;
		if (JSON.stringify(await player.play(at)) !== whole) wrong.push(`${name}: cut at byte ${at}`);
		const { said, failed } = await player.play(0, at);
		const told = JSON.stringify({ said, failed });
		if (failed === undefined && told !== whole)
			wrong.push(`${name}: broken off at byte ${at}, and taken for an answer`);
	}
	await player.stop();
}

process.stdout.write(`${RECORDINGS.length} streams, ${plays} plays, ${wrong.length} wrong\n${wrong.join("\n")}`);
process.exitCode = wrong.length === 0 ? 0 : 1;
