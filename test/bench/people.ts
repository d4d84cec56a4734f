/** Requests of people who talk with a model, made beforehand: prompts of all lengths, in turn from each key. */
import { createRandom } from "../support/random.ts";
import type { Gateway } from "./gateways.ts";
import { streamBody } from "./prompts.ts";
import { chatRequestBytes } from "./raw-connection.ts";
import type { TalkOptions } from "./talk-client.ts";
import { drawLengths } from "./traffic.ts";

const PROMPTS = 500;
/** Of English prose. */
const BYTES_PER_TOKEN = 4;
const SEED = 11;

/** The keys' places in `secrets` are the owners. */
export function peopleOf(gateway: Gateway, secrets: readonly string[]): TalkOptions["request"] {
	const random = createRandom(SEED);
	const bodies = Array.from({ length: PROMPTS }, () =>
		streamBody("talk", drawLengths(random).promptTokens * BYTES_PER_TOKEN),
	);
	const perKey = secrets.map((secret) => bodies.map((body) => chatRequestBytes(gateway, secret, body)));
	let nth = 0;
	return () => {
		nth += 1;
		const owner = nth % secrets.length;
		return { bytes: (perKey[owner] as Buffer[])[random.int(0, PROMPTS - 1)] as Buffer, owner };
	};
}
