import { expect, test } from "bun:test";
import { searchAccounts } from "../../src/console/operator/operator-accounts.ts";
import { getKey } from "../../src/keys/key-admin.ts";
import { accountBalance, keyBalance } from "../../src/ledger/balance.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { nanoUsd, parseUsd } from "../../src/money/nano-usd.ts";
import { foldAll } from "../support/sums.ts";
import { waitFor } from "../support/wait.ts";
import { keepSending, sendChat } from "./chat-client.ts";
import { areJournalsReplayed, withFleet } from "./fleet.ts";

/** Number of kills; `KILLS=10` is the long form. After one kill, the second process replays the first one's journal. */
const KILLS = Number(process.env.KILLS ?? 2);
const USERS = 8;
const PAID = 100_000_000_000;
const CAP = 10_000_000_000;

const { fleet, member } = await withFleet({ gapMsMax: 3, instances: 1 });
const { statements, sql } = fleet;
const metrics = async () => (await fetch(`${member.url}/metrics`)).text();

test(
	`pages and interfaces show equal spending after ${KILLS} \`kill -9\` under load`,
	async () => {
		const accountId = await fleet.account(PAID);
		const key = await fleet.key(accountId, { capNanoUsd: nanoUsd(CAP) });
		const users = Array.from({ length: USERS }, (_, nth) => () => {
			const ask = { words: 20 + 30 * nth, stream: nth % 3 > 0, maxTokens: 300 };
			return sendChat(member, key, ask);
		});
		// A pause of 20 ms between requests leaves processor time to starting processes and parallel tests.
		const traffic = keepSending(users, () => 20);
		const served = () => traffic.sent.filter(({ tokens, status }) => tokens > 0 || status === 200).length;
		for (let kill = 0; kill < KILLS; kill++) {
			const before = served();
			await waitFor(() => served() > before + USERS, "traffic to be served", 30_000);
			await member.crash();
			await member.start();
		}
		await traffic.stop();
		await waitFor(() => areJournalsReplayed([member]), "journals to be handed in", 30_000);
		const running = async () => (await sql`select 1 from reservation limit 1`).length;
		// Read from the metrics: most requests end before their settlement is in Postgres, and no row shows that.
		const queued = async () => /^tollgate_settlements_queued (\d+)$/m.exec(await metrics())?.[1];
		await waitFor(async () => (await queued()) === "0" && (await running()) === 0, "everything to be settled", 30_000);

		const lookUp = async (path: string) =>
			(await (await fetch(`${member.url}${path}`, { headers: { authorization: `Bearer ${key.secret}` } })).json()).data;
		const [credits, ofKey] = await Promise.all([lookUp("/v1/credits"), lookUp("/v1/key")]);
		await foldAll(statements);
		const [rows] = await sql`
		select sum(charged_nano_usd)::bigint as charged, count(*) filter (where basis = 'recovered')::int as recovered from usage_event`;
		const [hours] = await sql`select sum(charged_nano_usd)::bigint as charged from usage_hour where key_id = ${key.id}`;
		const [listed] = await searchAccounts(statements, accountId, { asked: 1, after: null });
		const ofCap = await keyBalance(statements, key.id);
		const spent = Number(rows?.charged);
		expect(spent).toBeGreaterThan(0);
		// Some requests were running at the kill.
		expect(rows?.recovered).toBeGreaterThan(0);
		const shown: Record<string, number> = {
			account: Number((await accountBalance(statements, accountId)).spent),
			key: Number((await getKey(statements, key)).spentNanoUsd),
			cap: CAP - Number(ofCap.remaining) - Number(ofCap.held),
			hours: Number(hours?.charged),
			operators: Number(listed?.spentNanoUsd),
			credits: Number(parseUsd(credits.spent_usd)),
			v1Key: Number(parseUsd(ofKey.spent_usd)),
		};
		expect(shown).toEqual(Object.fromEntries(Object.keys(shown).map((name) => [name, spent])));
		const { balance } = await accountBalance(statements, accountId);
		expect(balance + spent).toBe(PAID);
		expect(Math.round(credits.total_credits * 1e9)).toBe(PAID);
		expect((await sql`select 1 from ledger_entry where kind = 'credit_note'`).length).toBe(0);
		expect((await reconcile(statements)).checks.filter(({ ok }) => !ok)).toEqual([]);
	},
	30_000 + KILLS * 20_000,
);
