/** Work that runs during a failover: a batch, Stripe's webhooks, and the sealing of a day. */
import type postgres from "postgres";
import { createTopUp } from "../../src/billing/top-ups.ts";
import { createPgLedgerStore } from "../../src/ledger/pg-store.ts";
import { nanoUsd } from "../../src/money/nano-usd.ts";
import { batchesAt, chatLine, isOver, type ShownBatch } from "../batch/batch-service.ts";
import { signedEvent } from "../billing/stripe-server.ts";
import { quietPort, startServe } from "../chaos/serve-process.ts";
import { DATED, giving, settledEvent, wish } from "../ledger/fixture.ts";
import { waitFor } from "../support/wait.ts";
import type { FailoverWorld } from "./failover-world.ts";

export interface Customer {
	readonly account: string;
	readonly key: { readonly id: string; readonly secret: string };
}

/** Waits until the work is done on the current server. Returns the number of answers and the problems found. */
export type WaitForWork = (sql: postgres.Sql) => Promise<{ answers: number; problems: readonly string[] }>;

const LINES = 2_000;
const BATCH_MS_MAX = 120_000;

export async function runBatch(world: FailoverWorld, { key: { secret } }: Customer): Promise<WaitForWork> {
	const batches = batchesAt(world.members[0].url);
	const lines = Array.from({ length: LINES }, (_, at) => chatLine(`line-${at}`));
	const { id } = await batches.create(secret, await batches.upload(secret, lines));
	return async (sql) => {
		let last: ShownBatch | undefined;
		const ended = async () => {
			last = await batches.get(secret, id).catch(() => undefined);
			return last !== undefined && isOver(last);
		};
		await waitFor(ended, "the batch to end", BATCH_MS_MAX);
		const answers = await batches.lines(secret, last?.output_file_id ?? null);
		const names = new Set(answers.map(({ custom_id }) => custom_id));
		const [paid] = await sql`
			select count(*)::integer as lines from usage_event u where batch_id is not null and charged_nano_usd > 0
				and not exists (select 1 from batch_lost_request l where l.request_id = u.request_id)
				and not exists (select 1 from ledger_entry c where c.source_ref = 'batch-lost:' || u.request_id)`;
		const isOnce = names.size === LINES && answers.length === LINES && paid?.lines === LINES;
		const problem = `of ${LINES} lines ${names.size} have ${answers.length} answers and ${paid?.lines} charges`;
		return { answers: answers.length, problems: isOnce ? [] : [problem] };
	};
}

const PAYMENTS = 60;
const PAYMENT_PAUSE_MS = 200;
const SECRET = "whsec_failover";
const CENTS = 10_000;

/** Reports payments to a console as Stripe does. Repeats each report until it is acknowledged. */
export async function payByCard(world: FailoverWorld, { account }: Customer): Promise<WaitForWork> {
	const { fleet, members } = world;
	const PORT = String(quietPort());
	const console = await startServe(
		{
			...fleet.env,
			ROLE: "console",
			PORT,
			DATABASE_URL: members[0].databaseUrl,
			DATA_DIR: `${fleet.folder}/console`,
			STRIPE_SECRET_KEY: "sk_test_local",
			STRIPE_WEBHOOK_SECRET: SECRET,
			STRIPE_API_BASE: "http://127.0.0.1:9",
		},
		{ logPath: `${fleet.folder}/console.log` },
	);
	const payments: { topUp: string; event: Awaited<ReturnType<typeof signedEvent>> }[] = [];
	for (let at = 0; at < PAYMENTS; at++) {
		const topUp = `top_${at}_${crypto.randomUUID()}`;
		const checkout = `cs_${topUp}`;
		const amountNanoUsd = nanoUsd(CENTS * 10_000_000);
		await createTopUp(fleet.statements, { accountId: account, amountNanoUsd, method: "card", reference: topUp }, topUp);
		await fleet.sql`insert into stripe_checkout (id, top_up_id) values (${checkout}, ${topUp})`;
		const session = { id: checkout, object: "checkout.session", client_reference_id: topUp, payment_status: "paid" };
		const sum = { payment_intent: `pi_${topUp}`, amount_total: CENTS, currency: "usd", status: "complete" };
		const event = await signedEvent(SECRET, "checkout.session.completed", { ...session, ...sum });
		payments.push({ topUp, event });
	}
	const deliver = async ({ event: { body, signature } }: (typeof payments)[number]): Promise<void> => {
		const headers = { "content-type": "application/json", "stripe-signature": signature };
		const isTaken = async () => {
			const url = `http://127.0.0.1:${PORT}/api/stripe/webhook`;
			return (await fetch(url, { method: "POST", headers, body }).catch(() => undefined))?.status === 200;
		};
		await waitFor(isTaken, "a webhook to be acknowledged", BATCH_MS_MAX);
	};
	const delivered = (async () => {
		const running: Promise<void>[] = [];
		for (const payment of payments) {
			running.push(deliver(payment));
			await Bun.sleep(PAYMENT_PAUSE_MS);
		}
		await Promise.all(running);
	})();
	return async (sql) => {
		await delivered;
		const counted = async () => {
			const rows = await sql`
				select source_ref, count(*)::integer as times from ledger_entry where source_ref = any (${payments.map(({ topUp }) => `topup:${topUp}`)})
				group by 1`;
			return { booked: rows.length, twice: rows.filter(({ times }) => times > 1).length };
		};
		const before = await counted();
		const [lost] = await sql`
			select count(*)::integer as acts from lost_act where kind = 'budget' and subject = ${account} and outcome = 'lost'`;
		// Does what an operator does with reported lost bookings: resends the events at Stripe.
		for (const payment of payments) await deliver(payment);
		const after = await counted();
		console.kill("SIGKILL");
		await console.exited;
		const problems = [
			...(before.booked + lost?.acts < PAYMENTS
				? [`${before.booked} of ${PAYMENTS} payments booked, ${lost?.acts} reported`]
				: []),
			...(after.booked < PAYMENTS
				? [`${after.booked} of ${PAYMENTS} payments booked after all events were sent again`]
				: []),
			...(before.twice + after.twice > 0 ? [`${after.twice} payments booked twice`] : []),
		];
		return { answers: PAYMENTS, problems };
	};
}

/** Instance of the sealed day's requests, which no upstream has counted. */
export const PAST_INSTANCE = "past";
const DAY_MS = 86_400_000;
const DAY_REQUESTS = 4_000;
const SEALED_AT_ONCE = 50;
const SEAL_PAUSE_MS = 100;

/** Seals a day of requests in small steps, as the consoles' job does. */
export async function sealDay(world: FailoverWorld, { account, key }: Customer): Promise<WaitForWork> {
	const { sql, statements } = world.fleet;
	const [{ epoch } = { epoch: 0 }] = await sql`select instance_join(${PAST_INSTANCE}, 60000) as epoch`;
	await sql`select instance_go_live(${PAST_INSTANCE}, ${epoch}, (select coalesce(max(seq), 0) from control_log), 60000)`;
	const store = createPgLedgerStore({ statements }, PAST_INSTANCE, epoch);
	await store.grant([wish(account, DAY_REQUESTS * 10), wish(key.id, DAY_REQUESTS * 10)]);
	const at = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS * 1.5;
	await store.flush(
		Array.from({ length: DAY_REQUESTS }, (_, n) => settledEvent(account, key.id, 10, { at: at + n })),
		"[]",
	);
	await store.giveBack([giving(account, 0)]);
	await store.close();
	for (const [table, column] of DATED)
		await sql.unsafe(
			`update ${table} set ${column} = date_trunc('day', now(), 'UTC') - interval '36 hours' + random() * interval '1 minute'`,
		);
	let present = sql;
	const step = async () => (await present`select state from books_seal(${SEALED_AT_ONCE})`.catch(() => []))[0]?.state;
	let over = false;
	const sealing = (async () => {
		while (!over) {
			await step();
			await Bun.sleep(SEAL_PAUSE_MS);
		}
	})();
	return async (now) => {
		present = now;
		const days = () =>
			now`select usage_rows::integer as rows, charged_nano_usd::integer as charged, problem from sealed_day where usage_rows > 0`;
		await waitFor(async () => (await days()).length === 1, "the day to be sealed", BATCH_MS_MAX);
		over = true;
		await sealing;
		await now`delete from seal_round`;
		while ((await now`select state from books_verify(100000)`)[0]?.state === "more");
		const [day] = await days();
		const isWhole = day?.rows === DAY_REQUESTS && day.charged === DAY_REQUESTS * 10 && day.problem === null;
		const broken = await now`select name, broken, example from books_check() where broken > 0`;
		return {
			answers: 0,
			problems: [
				...(isWhole ? [] : [`the day is sealed with ${JSON.stringify(day)}`]),
				...broken.map((one) => JSON.stringify(one)),
			],
		};
	};
}
