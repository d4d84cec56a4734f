/** Accounts with automatic card top-ups at a simulated Stripe, and consoles whose job can be killed at any step. */
import { afterEach, expect } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { newId } from "../../src/base/id.ts";
import { silentLog } from "../../src/base/log.ts";
import { createAutoAttempts } from "../../src/billing/auto-payments.ts";
import { saveAutoTopUp } from "../../src/billing/auto-top-ups.ts";
import { createCardPayments } from "../../src/billing/card-payments.ts";
import { connectStripe } from "../../src/billing/stripe-client.ts";
import { accountBalance } from "../../src/ledger/balance.ts";
import { reconcile } from "../../src/ledger/reconciler.ts";
import { NANO_PER_USD, nanoUsd } from "../../src/money/nano-usd.ts";
import { untilEnd } from "../support/at-end.ts";
import { withDatabase } from "../support/database.ts";
import { paidAccount } from "../support/paid-account.ts";
import type { CardNature, PlayedCard } from "./stripe-cards.ts";
import { signedEvent, startStripe } from "./stripe-server.ts";

const SECRET = "whsec_automatic";
export const usd = (amount: number) => nanoUsd(amount * NANO_PER_USD);

export interface Payer {
	readonly accountId: string;
	readonly card: PlayedCard;
}

export interface AttemptRow {
	readonly id: string;
	readonly state: string;
	readonly reason: string | null;
	readonly payment_id: string | null;
	readonly top_up_id: string;
	readonly top_up_state: string;
}

/** Step at which a console dies, before or after the step's effect, or before which it sleeps. */
export type DeathStep =
	| { readonly at: number; readonly done: boolean }
	| { readonly at: number; readonly sleep: () => Promise<void> };

/** Checks the books after each test of the file, unless the tests insert accounts without ledger entries. */
export async function withAutomatic({ reconciles = true } = {}) {
	const db = await withDatabase();
	const stripe = untilEnd(startStripe());
	afterEach(async () => {
		stripe.cards.upset();
		stripe.slow();
		if (!reconciles) return;
		expect((await reconcile(db.statements)).checks.filter((check) => !check.ok)).toEqual([]);
	});
	const address = { secretKey: "sk_test_local", apiBase: stripe.url };
	const clock = { ...systemClock, after: () => () => {} };
	const deps = { statements: db.statements, tx: db.tx, clock, log: silentLog };
	const options = { ...address, webhookSecrets: [SECRET], serviceName: "Tollgate" };
	const cards = createCardPayments(deps, options);

	/** Runs the console's job once. Resolves with its number of steps when the job ended or died. */
	async function turn(death?: DeathStep): Promise<{ steps: number; died: boolean }> {
		const died = Promise.withResolvers<void>();
		let steps = 0;
		async function step<T>(act: () => Promise<T>): Promise<T> {
			steps += 1;
			if (death === undefined || steps < death.at) return act();
			if ("sleep" in death) {
				if (steps === death.at) await death.sleep();
				return act();
			}
			if (steps === death.at && death.done) await act().catch(() => {});
			died.resolve();
			return new Promise<never>(() => {});
		}
		const statements = ((...query: Parameters<typeof db.statements>) =>
			step(() => db.statements(...query))) as typeof db.statements;
		const tx = new Proxy(db.tx, {
			get: (target, name) => {
				const value = Reflect.get(target, name);
				if (name !== "transaction" && name !== "execute") return value;
				return (...given: unknown[]) => step(async () => Reflect.apply(value, target, given));
			},
		});
		const carry = ((...request: Parameters<typeof fetch>) => step(() => fetch(...request))) as typeof fetch;
		const attempts = createAutoAttempts({ statements, tx, stripe: connectStripe(address, carry), log: silentLog });
		const work = attempts.begin().then(() => attempts.drive());
		return { steps, died: await Promise.race([work.then(() => false), died.promise.then(() => true)]) };
	}

	/** Makes all waiting work due and runs the job; repeats this `turns` times. */
	async function pass(turns = 1): Promise<void> {
		for (let count = 0; count < turns; count++) {
			await db.sql`update auto_top_up_attempt set look_at = now() - interval '1 minute' where ended_at is null`;
			await db.sql`update card_setup set look_at = now() - interval '1 minute'`;
			await cards.collect();
			await turn();
		}
	}

	return {
		...{ db, stripe, cards, turn, pass },
		/** A console with short deadlines (milliseconds) for Stripe's answers and for a run of its job. */
		hasty: (callMs: number, turnMs: number, statements = db.statements) =>
			createCardPayments(
				{ ...deps, statements, clock: { ...systemClock, after: (_ms, run) => systemClock.after(turnMs, run) } },
				{ ...options, callMs },
			),
		/** Creates an account with USD 100 that buys USD 100 when below USD 50, at most USD 1,000 a month. */
		async payer(nature: CardNature = "good", amounts: { below?: number; amount?: number; most?: number } = {}) {
			const accountId = await paidAccount(db.statements);
			const card = stripe.cards.card(`cus_${accountId}`, nature);
			await db.sql`
				insert into saved_card (account_id, customer_id, payment_method_id, brand, last_four, exp_month, exp_year)
				values (${accountId}, ${card.customer}, ${card.id}, 'visa', '4242', 12, 2031)`;
			const { below = 50, amount = 100, most = 1_000 } = amounts;
			const set = { belowNanoUsd: usd(below), amountNanoUsd: usd(amount), monthMostNanoUsd: usd(most) };
			await saveAutoTopUp(db.statements, accountId, set);
			return { accountId, card, save: () => saveAutoTopUp(db.statements, accountId, set) };
		},
		async spend({ accountId }: Pick<Payer, "accountId">, amount: number): Promise<void> {
			const id = newId("led");
			await db.sql`select ledger_book(${id}, ${accountId}, 'adjustment', ${-usd(amount)}::bigint, ${id}, 'test', '', false)`;
		},
		async balance({ accountId }: Pick<Payer, "accountId">): Promise<number> {
			return (await accountBalance(db.statements, accountId)).balance / NANO_PER_USD;
		},
		attempts: ({ accountId }: Pick<Payer, "accountId">): Promise<AttemptRow[]> => db.sql<AttemptRow[]>`
			select a.id, a.state, a.reason, a.payment_id, a.top_up_id, t.state as top_up_state
			from auto_top_up_attempt a join top_up t on t.id = a.top_up_id where a.account_id = ${accountId} order by a.id`,
		async setting({ accountId }: Pick<Payer, "accountId">): Promise<Record<string, unknown> | undefined> {
			const [row] = await db.sql`select state, reason, tell from auto_top_up where account_id = ${accountId}`;
			return row;
		},
		charges: ({ card }: Payer, customer = card.customer): number =>
			stripe.cards.charged.filter((id) => stripe.cards.intents.find((one) => one.id === id)?.customer === customer)
				.length,
		async tell(type: string, object: Record<string, unknown>): Promise<number> {
			const { body, signature } = await signedEvent(SECRET, type, object);
			const headers = { "stripe-signature": signature, "content-length": String(body.length) };
			const response = await cards.webhook(
				new Request("http://service/api/stripe/webhook", { method: "POST", headers, body }),
			);
			return response.status;
		},
	};
}
