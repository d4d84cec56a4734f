import { type Sent, uuidOf } from "./chat-client.ts";
import type { Arrival } from "./counting-upstream.ts";
import type { Excuse } from "./touched.ts";
import type { Finding } from "./verdict.ts";

/** What became of the requests of customers to whom nothing was done. */
export interface WarmVerdict {
	readonly finding: Finding;
	/** Why the others were refused: each refusal has one cause. */
	readonly causes: Readonly<Record<string, number>>;
}

/** An instance gives credit back that nobody used for a minute; who came within half of that is known and has credit there. */
const WARM_MS = 30_000;

/**
 * Which requests count: of a customer with credit to spare, whose key nobody revoked and no cap bounds, whose account
 * nobody suspended (`steady`); warm, that is, the same instance gave the same key a whole answer in the last 30 s, and
 * nothing has excused that instance in between; and nothing excuses it while the request runs. Those are never refused.
 * One that the model server got was admitted: what became of it there is the model server's. Until then, no answer at all
 * is a refusal too. `renewals`: when a cap of a key began anew, whose credit each instance has to fetch then.
 */
export function judgeWarm(
	sent: readonly Sent[],
	arrivals: readonly Arrival[],
	steady: ReadonlySet<string>,
	excusesOf: (member: number) => readonly Excuse[],
	renewals: ReadonlyMap<string, Excuse> = new Map(),
): WarmVerdict {
	const admitted = new Set(arrivals.map(({ requestId }) => uuidOf(requestId)));
	const excuses = new Map<number, readonly Excuse[]>();
	const known = new Map<string, Sent[]>();
	const causes: Record<string, number> = {};
	const broken: string[] = [];
	let warm = 0;
	for (const one of sent.filter(({ key }) => steady.has(key)).sort((a, b) => a.sentAtMs - b.sentAtMs)) {
		const ofMember = excuses.get(one.member) ?? excusesOf(one.member);
		excuses.set(one.member, ofMember);
		const renewal = renewals.get(one.key);
		const own = renewal === undefined ? ofMember : [...ofMember, renewal];
		const place = `${one.member} ${one.key}`;
		const earlier = known.get(place) ?? [];
		known.set(place, earlier);
		if (one.complete) earlier.push(one);
		const isRefused = !one.complete && !one.left && !(one.uuid !== undefined && admitted.has(one.uuid));
		const cause = causeOf(one, own, earlier);
		if (cause === undefined) warm += 1;
		if (!isRefused) continue;
		const heard = one.status === 0 ? "no answer" : `${one.status} ${one.code ?? "without a code"}`;
		const name = `${heard}: ${cause ?? "warm"}`;
		causes[name] = (causes[name] ?? 0) + 1;
		if (cause === undefined)
			broken.push(`${heard} from instance ${one.member} at ${new Date(one.sentAtMs).toISOString()}`);
	}
	const claim = "no warm request of a customer to whom nothing was done is refused";
	return { finding: { claim, checked: warm, broken }, causes };
}

/** Why this request may be refused; undefined if nothing allows it. */
function causeOf(one: Sent, excuses: readonly Excuse[], answered: readonly Sent[]): string | undefined {
	const endMs = one.endMs ?? one.sentAtMs;
	const now = excuses.find(({ fromMs, untilMs }) => fromMs <= endMs && one.sentAtMs <= untilMs);
	if (now) return `the instance ${now.why}`;
	// The newest first: it is the one that counts, mostly.
	const wasAnswered = answered.findLast(
		(before) =>
			before !== one &&
			(before.endMs ?? Number.POSITIVE_INFINITY) <= one.sentAtMs &&
			one.sentAtMs - (before.endMs ?? 0) <= WARM_MS &&
			!excuses.some(({ fromMs, untilMs }) => fromMs <= one.sentAtMs && before.sentAtMs <= untilMs),
	);
	return wasAnswered ? undefined : "the key was not warm there";
}
