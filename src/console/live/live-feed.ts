import type { Clock } from "../../base/clock.ts";
import { createFairPool } from "../../base/fair-pool.ts";
import type { Log } from "../../base/log.ts";
import type { Statements } from "../../db/statements.ts";
import { ConsoleError } from "../console-error.ts";

/** The session and account that must stay valid for a page to keep receiving events. */
export interface LiveRight {
	readonly userId: string;
	readonly sessionId: string;
	readonly accountId: string | null;
}

export type LiveRights = (rights: readonly LiveRight[]) => Promise<ReadonlySet<LiveRight>>;

/** A data source for live pages. Subscribers with the same `name` share one database read. */
export interface LiveTopic {
	/** Contains the account's id, because accounts must not share data. */
	readonly name: string;
	readonly event: string;
	read(): Promise<unknown>;
}

export type LiveFeed = ReturnType<typeof createLiveFeed>;

const READ_MS = 2_000;
const COMMENT_MS = 10_000;
/** Duration of a stream. The page then reconnects, which checks its session again. */
const LIFE_MS = 5 * 60_000;
const STREAMS_MAX = 2_000;
const STREAMS_OF_USER_MAX = 12;
/** First bytes of each stream: set the browser's reconnect delay to 2 s. */
const COME_AGAIN = "retry: 2000\n\n";

interface Stream {
	readonly right: LiveRight;
	readonly topics: ReadonlySet<string>;
	readonly sinceMs: number;
	/** Last event sent per topic; an equal event is not sent again. */
	readonly sent: Map<string, string>;
	send(text: string): boolean;
	end(): void;
}

/**
 * Server-sent events for pages. Every two seconds the feed reads each topic with subscribers, checks the subscribers'
 * rights, and sends changed data to the authorized pages.
 */
export function createLiveFeed({ clock, log, holding }: { clock: Clock; log: Log; holding: LiveRights }) {
	const streams = new Set<Stream>();
	const places = createFairPool({
		size: () => STREAMS_MAX,
		share: () => STREAMS_OF_USER_MAX / STREAMS_MAX,
		allYield: true,
		own: tooMany,
		full: tooMany,
	});
	const watched = new Map<string, LiveTopic>();
	let cancelTick: (() => void) | undefined;
	let stopped = false;
	let commentedMs = 0;

	function wake(): void {
		if (cancelTick === undefined && !stopped && streams.size > 0) cancelTick = clock.after(READ_MS, () => void tick());
	}

	async function tick(): Promise<void> {
		const nowMs = clock.monotonicMs();
		for (const stream of [...streams]) if (nowMs - stream.sinceMs >= LIFE_MS) stream.end();
		if (nowMs - commentedMs >= COMMENT_MS) {
			commentedMs = nowMs;
			for (const stream of streams) stream.send(": \n\n");
		}
		for (const name of watched.keys())
			if (![...streams].some((stream) => stream.topics.has(name))) watched.delete(name);
		await refresh([...watched.values()], [...streams]);
		cancelTick = undefined;
		wake();
	}

	/** Sends nothing if the rights of the streams cannot be read. */
	async function refresh(topics: readonly LiveTopic[], readers: readonly Stream[]): Promise<void> {
		const news = await readNews(log, topics);
		try {
			const held = await holding(readers.map(({ right }) => right));
			for (const stream of readers) {
				if (held.has(stream.right)) tell(stream, news);
				else stream.end();
			}
		} catch (error) {
			log.debug("rights of live pages could not be checked", { error });
		}
	}

	return {
		/** Opens a stream. Fault overloaded if too many pages are open. */
		open(topics: readonly LiveTopic[], right: LiveRight): Response {
			// Answers with a stream that ends at once: browsers reconnect after a stream, but not after an error status. The
			// reconnect reaches a running instance.
			if (stopped) return eventStream(COME_AGAIN);
			const sinceMs = clock.monotonicMs();
			let stream: Stream;
			const leave = places.enter(right.userId, { pace: () => sinceMs, giveUp: () => stream.end() });
			const encoder = new TextEncoder();
			const body = new ReadableStream<Uint8Array>(
				{
					start(controller) {
						stream = {
							right,
							topics: new Set(topics.map((topic) => topic.name)),
							sinceMs,
							sent: new Map(),
							send(text) {
								// A slow page skips this event and gets a newer one later.
								if (!streams.has(stream) || (controller.desiredSize ?? 0) <= 0) return false;
								controller.enqueue(encoder.encode(text));
								return true;
							},
							end() {
								leave();
								if (streams.delete(stream)) controller.close();
							},
						};
						streams.add(stream);
						controller.enqueue(encoder.encode(COME_AGAIN));
						for (const topic of topics) watched.set(topic.name, topic);
						void refresh(topics, [stream]);
						wake();
					},
					cancel() {
						leave();
						streams.delete(stream);
					},
				},
				{ highWaterMark: 64 },
			);
			return eventStream(body);
		},
		size: () => streams.size,
		stop(): void {
			stopped = true;
			cancelTick?.();
			for (const stream of [...streams]) stream.end();
		},
	};
}

function tooMany(): ConsoleError {
	return new ConsoleError("overloaded", "Too many pages are open. Close one of them.", { retryAfterS: 10 });
}

function eventStream(body: string | ReadableStream<Uint8Array>): Response {
	return new Response(body, { headers: { "content-type": "text/event-stream", "x-accel-buffering": "no" } });
}

function tell(stream: Stream, news: ReadonlyMap<string, string>): void {
	for (const [name, text] of news) {
		if (!stream.topics.has(name) || stream.sent.get(name) === text) continue;
		if (stream.send(text)) stream.sent.set(name, text);
	}
}

async function readNews(log: Log, topics: readonly LiveTopic[]): Promise<ReadonlyMap<string, string>> {
	const news = new Map<string, string>();
	for (const topic of topics) {
		try {
			news.set(topic.name, `event: ${topic.event}\ndata: ${JSON.stringify(await topic.read())}\n\n`);
		} catch (error) {
			log.debug("a live reading failed", { topic: topic.name, error });
		}
	}
	return news;
}

/** Returns the streams that may continue: not those of ended sessions, removed members or former operators. */
export function createLiveRights(statements: Statements, options: { secondFactor: boolean }): LiveRights {
	return async (rights) => {
		if (rights.length === 0) return new Set();
		const asked = JSON.stringify(rights.map((right, nr) => ({ ...right, nr })));
		const rows = await statements<{ nr: number }>`
			select w.nr from jsonb_to_recordset(${asked}::text::jsonb) w(nr integer, "userId" text, "sessionId" text, "accountId" text)
				join session s on s.id = w."sessionId" and s.user_id = w."userId" and s.expires_at > clock_timestamp()
				join console_user u on u.id = s.user_id
			where case when w."accountId" is null then u.operator and s.company_revision is null and (u.two_factor_enabled or not ${options.secondFactor}::boolean)
				else exists (select 1 from member m left join company_sign_in c on c.account_id = m.account_id
					where m.user_id = u.id and m.account_id = w."accountId" and case when s.company_revision is null
						then m.role = 'owner' or not coalesce(c.required and c.domain_verified_at is not null, false)
						else c.revision = s.company_revision end)
					or (u.operator and s.company_revision is null and (u.two_factor_enabled or not ${options.secondFactor}::boolean)
						and audit_viewing(u.id, w."accountId")) end`;
		return new Set(rows.flatMap(({ nr }) => rights[nr] ?? []));
	};
}
