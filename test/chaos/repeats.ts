import type { Random } from "../support/random.ts";
import { nowMs } from "../support/wait.ts";
import { bodyOf, uuidOf } from "./chat-client.ts";
import type { Fleet, FleetMember } from "./fleet.ts";
import { type Finding, finding, type UsageRow } from "./verdict.ts";

/** An Idempotency-Key whose request is repeated to any instance until it has an outcome. */
export interface Repeated {
	/** Id of the API key, which is used only for these requests, one at a time. */
	readonly keyId: string;
	readonly fromMs: number;
	untilMs: number;
	/** answered: a client got a complete answer. charged: the request was sent before, but its answer was not stored. */
	outcome: "answered" | "charged" | undefined;
	/** Other results in order: HTTP statuses, or 0 for no answer. */
	readonly heard: number[];
	/** Request ids of complete answers. */
	readonly answeredBy: Set<string>;
	/** Different texts of complete answers, of which there must be one. */
	readonly answers: Set<string>;
}

/** Milliseconds until a request is given up: its first instance may be paused for a lease, plus a minute. */
const GIVEN_UP_MS = 120_000;
const DEADLINE_MS = 20_000;
/** How many other instances must replay the answer afterwards. */
const TOLD_AGAIN = 2;

/** Starts `users` customers who repeat each request until they know its outcome. */
export async function startRepeats(fleet: Fleet, random: Random, users: number) {
	const all: Repeated[] = [];
	let stopping = false;

	async function user(own: Random, key: { id: string; secret: string }): Promise<void> {
		while (!stopping) {
			const one = begun(key.id);
			all.push(one);
			const ask = asked(key.secret, own);
			while (one.outcome === undefined && nowMs() < one.fromMs + GIVEN_UP_MS) {
				await send(one, ask, own.pick(fleet.members));
				if (one.outcome === undefined) await Bun.sleep(own.between(5, 100));
			}
			for (let nth = 0; nth < TOLD_AGAIN; nth++) await send(one, ask, own.pick(fleet.members));
			one.untilMs = nowMs();
			await Bun.sleep(own.between(5, 50));
		}
	}

	const keys = [];
	for (let nth = 0; nth < users; nth++) keys.push(await fleet.key(await fleet.account()));
	const running = keys.map((key) => user(random.fork(), key));
	return {
		all,
		/** Resolves when each request has an outcome or was given up. */
		async stop() {
			stopping = true;
			await Promise.all(running);
		},
	};
}

function begun(keyId: string): Repeated {
	const [answeredBy, answers] = [new Set<string>(), new Set<string>()];
	return { keyId, fromMs: nowMs(), untilMs: 0, outcome: undefined, heard: [], answeredBy, answers };
}

function asked(secret: string, own: Random): RequestInit {
	return {
		method: "POST",
		headers: { "content-type": "application/json", authorization: `Bearer ${secret}`, "idempotency-key": own.uuid() },
		body: JSON.stringify(bodyOf({ words: own.int(1, 60), stream: own.chance(0.5), maxTokens: own.int(5, 60) })),
	};
}

async function send(one: Repeated, ask: RequestInit, to: FleetMember): Promise<void> {
	let status = 0;
	try {
		const signal = AbortSignal.timeout(DEADLINE_MS);
		const response = await fetch(`${to.url}/v1/chat/completions`, { ...ask, signal });
		status = response.status;
		const text = await response.text();
		const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
		if (status === 200 && (!isStream || (text.endsWith("data: [DONE]\n\n") && !text.includes('data: {"error":')))) {
			one.outcome = "answered";
			one.answers.add(text);
			one.answeredBy.add(uuidOf(response.headers.get("x-request-id")) ?? "none");
			return;
		}
		if (status === 409 && response.headers.get("x-should-retry") === "false") one.outcome ??= "charged";
	} catch {
		// Ignored: the connection broke or took too long. The outcome is unknown, so the request is repeated.
	}
	one.heard.push(status);
}

/** Judges the repeated requests by comparing them with all rows in the database. */
export function judgeRepeats(all: readonly Repeated[], rows: readonly UsageRow[]): Finding[] {
	const ofKey = Map.groupBy(rows, (row) => row.key_id);
	const wholeOf = ({ keyId, fromMs, untilMs }: Repeated) =>
		(ofKey.get(keyId) ?? []).filter(
			(row) => row.ending === "finished" && row.admitted_ms >= fromMs - 1 && row.admitted_ms <= untilMs + 1,
		);
	const told = (one: Repeated) => `${one.keyId} heard ${one.heard.join(" ")}, then ${one.outcome}`;
	return [
		finding("what is repeated under an Idempotency-Key comes to an outcome", all, (one) =>
			one.outcome === undefined ? told(one) : undefined,
		),
		finding("under an Idempotency-Key one request at most is served to its end", all, (one) => {
			const whole = wholeOf(one);
			return whole.length <= 1 ? undefined : `${told(one)}: ${whole.map((row) => row.request_id).join(" ")}`;
		}),
		finding(
			"every repetition gets the same answer, that of the one request that was charged",
			all.filter(({ outcome }) => outcome === "answered"),
			(one) => {
				const right = one.answers.size === 1 && wholeOf(one).some(({ request_id }) => one.answeredBy.has(request_id));
				return right ? undefined : `${told(one)}: ${one.answers.size} answers by ${[...one.answeredBy].join(" ")}`;
			},
		),
	];
}
