import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { AppendedEntry } from "../../src/cluster/control-log.ts";
import { waitApplied } from "../../src/cluster/fence.ts";
import { createPgFenceStore } from "../../src/cluster/pg-fence-store.ts";
import { migratedUrl } from "../../src/db/migrate.ts";
import { createStatements } from "../../src/db/statements.ts";
import { revokeKey } from "../../src/keys/key-admin.ts";
import { sendChat } from "./chat-client.ts";
import { startCountingUpstream } from "./counting-upstream.ts";
import { summaryOf } from "./figures.ts";
import { GRACE_MS, startFleet } from "./fleet.ts";
import { startOwnPostgres } from "./own-postgres.ts";

export interface RevocationFigures {
	readonly revocations: number;
	readonly whole: Summary;
	readonly statement: Summary;
	/** From then on until no instance admits it. */
	readonly spread: Summary;
	/** How often the caller had to ask whether it is in force. */
	readonly looks: Summary;
	readonly look: Summary;
	readonly served: number;
	/** Keys that an instance served after their revocation had returned. */
	readonly servedAfter: readonly string[];
}

type Summary = ReturnType<typeof summaryOf>;

export interface RevocationOptions {
	revocations: number;
	/** Streams at once on all instances together. */
	users: number;
}

const ASK = { words: 3, stream: false, maxTokens: 5 };

/**
 * Revokes keys one after the other, each in use on three instances, while those serve other customers; and takes the
 * time until each is in force everywhere. The load is a process of its own, and nobody stands between an instance and
 * Postgres, so that what is measured is the service.
 */
export async function measureRevocations(options: RevocationOptions): Promise<RevocationFigures> {
	const ends: (() => Promise<unknown>)[] = [];
	try {
		const postgres = await startOwnPostgres();
		ends.push(() => postgres.destroy());
		const upstream = await startCountingUpstream({ gapMsMax: 4, failures: 0 });
		ends.push(() => upstream.stop());
		const fleet = await startFleet({ databaseUrl: postgres.url, upstreamUrl: upstream.url, direct: true });
		ends.push(() => fleet.stop());
		const liveness = createStatements(
			{ clock: systemClock, log: silentLog },
			{
				url: (await migratedUrl(postgres.url)) ?? "",
				connectionsMax: 2,
				statementDeadlineMs: 5_000,
				applicationName: "revoker",
			},
		);
		ends.push(() => liveness.end());
		const account = await fleet.account();
		const busy = await fleet.key(await fleet.account());
		const load = Bun.spawn([process.execPath, import.meta.path], {
			env: {
				...process.env,
				LOAD: JSON.stringify({ urls: fleet.members.map(({ url }) => url), secret: busy.secret, users: options.users }),
			},
			stdio: ["ignore", "ignore", "inherit"],
		});
		ends.push(async () => {
			load.kill();
			await load.exited;
		});
		const ask = (key: { id: string; secret: string }) =>
			Promise.all(fleet.members.map(({ index, url }) => sendChat({ member: index, url }, key, ASK)));
		const took: Record<"whole" | "statement" | "spread" | "looks" | "look", number[]> = {
			whole: [],
			statement: [],
			spread: [],
			looks: [],
			look: [],
		};
		const servedAfter: string[] = [];
		const store = createPgFenceStore(liveness);
		const counting = {
			...store,
			async lagging(entry: AppendedEntry) {
				const startedMs = performance.now();
				const pending = await store.lagging(entry);
				took.look.push(performance.now() - startedMs);
				return pending;
			},
		};
		const before = (await upstream.report()).length;
		for (let at = 0; at < options.revocations; at++) {
			const key = await fleet.key(account);
			for (const { status } of await ask(key)) if (status !== 200) throw new Error(`a warm key was answered ${status}`);
			const startedMs = performance.now();
			const looksBefore = took.look.length;
			const entry = await revokeKey(fleet.statements, key);
			const revokedMs = performance.now();
			const clock = { store: counting, clock: systemClock };
			const { effective } = await waitApplied(clock, entry, { deadlineMs: 60_000, graceMs: GRACE_MS });
			const everywhereMs = performance.now();
			if (!effective) throw new Error(`the revocation of ${key.id} did not come into force`);
			took.whole.push(everywhereMs - startedMs);
			took.statement.push(revokedMs - startedMs);
			took.spread.push(everywhereMs - revokedMs);
			took.looks.push(took.look.length - looksBefore);
			if ((await ask(key)).some(({ code }) => code !== "api_key_revoked")) servedAfter.push(key.id);
		}
		const served = (await upstream.report()).length - before;
		const { whole, statement, spread, looks, look } = took;
		return {
			revocations: options.revocations,
			whole: summaryOf(whole),
			statement: summaryOf(statement),
			spread: summaryOf(spread),
			looks: summaryOf(looks),
			look: summaryOf(look),
			served,
			servedAfter,
		};
	} finally {
		for (const end of ends.reverse()) await end();
	}
}

/** The load, in a process of its own, until it is ended. */
async function load({
	urls,
	secret,
	users,
}: {
	urls: readonly string[];
	secret: string;
	users: number;
}): Promise<void> {
	const user = async (at: number): Promise<void> => {
		for (let turn = at; ; turn++) {
			const member = turn % urls.length;
			const answer = await sendChat(
				{ member, url: urls[member] ?? "" },
				{ id: "busy", secret },
				{ words: 40, stream: turn % 4 !== 0, maxTokens: 60 },
			);
			if (answer.status !== 200) await Bun.sleep(20);
		}
	};
	await Promise.all(Array.from({ length: users }, (_, at) => user(at)));
}

if (import.meta.main) await load(JSON.parse(process.env.LOAD ?? "{}"));
