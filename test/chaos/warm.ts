import { type SentRequest, uuidOf } from "./chat-client.ts";
import type { Arrival } from "./counting-upstream.ts";
import type { Excuse } from "./touched.ts";

/** Milliseconds after its use for which a key has credit at the instance. Idle credit returns after a minute. */
const WARM_MS = 30_000;

/**
 * Judges requests that must never be refused: the customer is `steady` (spare credit, no cap, key never revoked,
 * account never suspended); the request is warm (the same instance gave the same key a whole answer in the last 30 s,
 * with no excuse since); and nothing excuses the instance while the request runs. A request that reached the model
 * server counts as admitted; before that, no answer counts as a refusal. `renewals`: when a key's cap was renewed and
 * each instance had to draw credit. `causes`: number of refusals by known cause.
 */
export function judgeWarm(
	sent: readonly SentRequest[],
	arrivals: readonly Arrival[],
	steady: ReadonlySet<string>,
	excusesOf: (member: number) => readonly Excuse[],
	renewals: ReadonlyMap<string, Excuse> = new Map(),
) {
	const admitted = new Set(arrivals.map(({ requestId }) => uuidOf(requestId)));
	const excuses = new Map<number, readonly Excuse[]>();
	const known = new Map<string, SentRequest[]>();
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

/** The known cause for which this request may be refused; undefined if there is none. */
function causeOf(one: SentRequest, excuses: readonly Excuse[], answered: readonly SentRequest[]): string | undefined {
	const endMs = one.endMs ?? one.sentAtMs;
	const now = excuses.find(({ fromMs, untilMs }) => fromMs <= endMs && one.sentAtMs <= untilMs);
	if (now) return `the instance ${now.why}`;
	// Searches from the newest answer on, because that usually decides.
	const wasAnswered = answered.findLast(
		(before) =>
			before !== one &&
			(before.endMs ?? Number.POSITIVE_INFINITY) <= one.sentAtMs &&
			one.sentAtMs - (before.endMs ?? 0) <= WARM_MS &&
			!excuses.some(({ fromMs, untilMs }) => fromMs <= one.sentAtMs && before.sentAtMs <= untilMs),
	);
	return wasAnswered ? undefined : "the key was not warm there";
}
