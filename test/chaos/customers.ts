import { expect } from "bun:test";
import { nowMs, waitFor } from "../support/wait.ts";
import { keepSending, type SentRequest, sendChat } from "./chat-client.ts";
import { withFleet } from "./fleet.ts";

const USERS = 2;
/** Milliseconds of traffic after which an instance has a slice that lasts longer than a lease. */
const WARM_MS = 2_500;
/** Milliseconds of traffic after which instances know the key. Enough if the test needs no credit beyond them. */
export const SHORT_TRAFFIC_MS = 300;

type Key = { readonly id: string; readonly secret: string };

/**
 * Starts an instance and customers for all tests of a file. The customers send requests even while the database is down.
 */
export async function withCustomers(databaseUrl: string) {
	const { fleet, member } = await withFleet({ databaseUrl, instances: 1 });

	const ask = (key: Key, at = 0, to = member): Promise<SentRequest> =>
		sendChat(to, key, { words: 4, stream: at % 2 === 0, maxTokens: 50 });

	/** Sends requests continuously until `stop`. */
	function keepAsking(key: Key, to = member) {
		const users = Array.from({ length: USERS }, (_, at) => () => ask(key, at, to));
		// A pause of 120 ms between requests leaves processor time to parallel tests.
		return keepSending(users, () => 120);
	}

	async function rowsOf(account: string): Promise<{ count: number; charged: number }> {
		const [row] = await fleet.sql`
			select count(*)::int as count, coalesce(sum(charged_nano_usd), 0)::bigint as charged from usage_event where account_id = ${account}`;
		return { count: Number(row?.count), charged: Number(row?.charged) };
	}

	/**
	 * Creates a key that has had traffic for `forMs`. A new key may get 503 while connections of an earlier outage time
	 * out, so the time begins after that.
	 */
	async function warmKey(forMs = WARM_MS, to = member) {
		const account = await fleet.account();
		const key = await fleet.key(account);
		const warming = keepAsking(key, to);
		let seen = 0;
		let smooth = { sinceMs: nowMs(), from: 0 };
		await waitFor(
			() => {
				for (; seen < warming.sent.length; seen++)
					if (!warming.sent[seen]?.complete) smooth = { sinceMs: nowMs(), from: seen + 1 };
				return seen - smooth.from >= 10 && nowMs() - smooth.sinceMs > forMs;
			},
			"the key to be warm",
			30_000,
		);
		const before = await warming.stop();
		const refused = before.filter((one) => !one.complete);
		expect(refused.map(({ status }) => status).filter((status) => status !== 503)).toEqual([]);
		expect(before.slice(smooth.from).every((one) => one.complete)).toBe(true);
		return { account, key, before: before.filter((one) => one.complete) };
	}

	return { fleet, member, ask, keepAsking, rowsOf, warmKey };
}
