import { systemClock } from "../base/clock.ts";
import { isoOrNull } from "../base/iso-date.ts";
import { silentLog } from "../base/log.ts";
import { bookAdjustment, checkAdjustment } from "../billing/adjustments.ts";
import { readAutoTopUp } from "../billing/auto-top-ups.ts";
import { checkTerms, writtenTerms } from "../billing/price-agreements.ts";
import { STOP_REASONS } from "../billing/stop-reasons.ts";
import {
	confirmTopUp,
	createTopUp,
	listTopUps,
	rejectTopUp,
	TOP_UP_STATES,
	type TopUpRecord,
} from "../billing/top-ups.ts";
import { newestControlEntry } from "../cluster/control-log.ts";
import { createTransactional } from "../db/transactional.ts";
import {
	type AccountRecord,
	createAccount,
	getAccount,
	listAccounts,
	suspendAccount,
	unsuspendAccount,
	updateAccount,
} from "../keys/account-admin.ts";
import { accountBalance } from "../ledger/balance.ts";
import { jsonFields } from "../money/json-fields.ts";
import { formatUsd, ZERO_USD } from "../money/nano-usd.ts";
import { type CommandInput, type CommandRuns, UsageError } from "./command.ts";
import type { DatabaseSession } from "./database-session.ts";
import { actAndFence, fenceOutput } from "./fence-output.ts";
import { parseAccountTerms, parseChanges, parseNames, parsePage, parseUsdOption } from "./setting-options.ts";
import { listOutput } from "./table.ts";

export const accountCommands: CommandRuns = {
	async "account create"({ withDatabase }, input) {
		const name = input.option("name");
		const account = { email: input.required("email"), ...(name === undefined ? {} : { name }), vouched: true };
		const { id } = await withDatabase(({ statements }) => createAccount(statements, account));
		return { json: { id }, text: `created account ${id}` };
	},
	async "account show"({ withDatabase }, input) {
		const [account, balance, automatic] = await withDatabase(async ({ statements }) => {
			const found = await getAccount(statements, input.argument(0));
			return [found, await accountBalance(statements, found.id), await readAutoTopUp(statements, found.id)] as const;
		});
		const json = {
			id: account.id,
			balance_usd: formatUsd(balance.balance),
			held_usd: formatUsd(balance.held),
			available_usd: formatUsd(balance.available),
			spent_usd: formatUsd(balance.spent),
			tags: account.tags,
			tokens_per_minute: account.tokensPerMinute,
			prices: account.agreements.map(writtenTerms),
			auto_top_up:
				automatic === null
					? null
					: {
							below_usd: formatUsd(automatic.belowNanoUsd),
							amount_usd: formatUsd(automatic.amountNanoUsd),
							month_most_usd: formatUsd(automatic.monthMostNanoUsd),
							state: automatic.state,
							reason: automatic.reason,
						},
		};
		const auto = json.auto_top_up;
		const why = automatic?.reason ? `: ${STOP_REASONS[automatic.reason]}` : "";
		const text = [
			`${account.id}  ${account.email}  ${account.name}  ${account.state}`,
			`signed in ${isoOrNull(account.signedInAtMs) ?? "never"}, topped up: ${account.toppedUp ? "yes" : "no"}`,
			`tags: ${account.tags.join(",") || "none"}, tokens per minute: ${account.tokensPerMinute ?? "as its tags"}`,
			...account.agreements.map((one) => `price: ${JSON.stringify(writtenTerms(one))}`),
			`balance   USD ${json.balance_usd}`,
			`held      USD ${json.held_usd}`,
			`available USD ${json.available_usd}`,
			`spent     USD ${json.spent_usd}`,
			auto === null
				? "automatic top-ups: off"
				: `automatic top-ups: USD ${auto.amount_usd} below a balance of USD ${auto.below_usd}, at most USD ${auto.month_most_usd} a month; ${auto.state}${why}`,
		];
		return { json, text: text.join("\n") };
	},
	async "account list"({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listAccounts(statements, parsePage(input)));
		return listOutput(page, accountJson, ["ID", "E-MAIL", "NAME", "STATE", "TOPPED UP"]);
	},
	async "account update"({ withDatabase }, input) {
		const changes = parseChanges(input, parseAccountTerms(input));
		return withDatabase(async ({ statements, liveness }) => {
			const { id, entry } = await updateAccount(statements, input.argument(0), changes);
			if (entry === null) return { json: { id }, text: `updated account ${id}` };
			return fenceOutput({ liveness }, { id }, entry, input);
		});
	},
	"account suspend": (context, input) => actAndFence(context, input, suspendAccount, { state: "suspended" }),
	"account unsuspend": (context, input) => actAndFence(context, input, unsuspendAccount, { state: "active" }),
};

const accountJson = (account: AccountRecord) =>
	jsonFields("id email name state topped_up time_zone tags tokens_per_minute signed_in_at created_at", account);

/** Actor of the command line's entries in the books and the audit log. */
const ACTOR = "cli";
const TRANSACTION = { applicationName: "tollgate cli", statementDeadlineMs: 30_000, transactionDeadlineMs: 60_000 };

export const topUpCommands: CommandRuns = {
	async "topup create"({ withDatabase }, input) {
		const amountNanoUsd = parseUsdOption("usd", input.required("usd"));
		const topUp = {
			accountId: input.required("account"),
			amountNanoUsd,
			method: "transfer",
			reference: input.required("reference"),
		} as const;
		const { id, state } = await withDatabase(({ statements }) => createTopUp(statements, topUp));
		return { json: { id, status: state }, text: `top-up ${id} is ${state}` };
	},
	async "promotion create"({ withDatabase, config }, input) {
		const amount = parseUsdOption("usd", input.required("usd"));
		const promotion = { lastDay: input.option("last-day") ?? null };
		const [reason, idempotencyKey] = [input.required("reason"), `${ACTOR}:${input.required("reference")}`];
		checkAdjustment({ amount, promotion }, { amount: "usd", lastDay: "last-day" }, systemClock.wallMs());
		const { id, state } = await withDatabase((session) =>
			book(session, input, { amount, promotion, reason, idempotencyKey }, config().topUpSecondLook),
		);
		return { json: { id, status: state }, text: `promotional credit ${id} is ${state}` };
	},
	async "price agree"({ withDatabase, config }, input) {
		const option = (name: string) => input.option(name) ?? null;
		const own = input.option("rates");
		const rates =
			own === undefined ? null : Object.fromEntries(parseNames("rates", own).map((rate) => rate.split("=")));
		const written = { model: option("model"), discount: option("discount"), rates, from: option("from") };
		const [reason, idempotencyKey] = [input.required("reason"), `${ACTOR}:${input.required("reference")}`];
		return withDatabase(async (session) => {
			const price = await checkTerms(session.statements, written, systemClock.wallMs());
			const asked = { amount: ZERO_USD, price, reason, idempotencyKey };
			const { id, state } = await book(session, input, asked, config().priceSecondLook);
			if (state !== "booked") return { json: { id, status: state }, text: `price agreement ${id} is ${state}` };
			return fenceOutput(session, { id, status: state }, await newestControlEntry(session.statements), input);
		});
	},
	async "topup confirm"({ withDatabase }, input) {
		const { id, state, seq } = await withDatabase(({ statements }) =>
			confirmTopUp(statements, input.argument(0), ACTOR),
		);
		return {
			json: { status: state },
			text: seq === null ? `top-up ${id} was already confirmed` : `top-up ${id} is confirmed`,
		};
	},
	async "topup reject"({ withDatabase }, input) {
		const { id, state } = await withDatabase(({ statements }) => rejectTopUp(statements, input.argument(0), ACTOR));
		return { json: { status: state }, text: `top-up ${id} is rejected` };
	},
	async "topup list"({ withDatabase }, input) {
		const account = input.option("account");
		const status = input.option("status");
		const state = TOP_UP_STATES.find((one) => one === status);
		if (status !== undefined && state === undefined)
			throw new UsageError(`--status must be one of ${TOP_UP_STATES.join(", ")}`);
		const page = await withDatabase(async ({ statements }) => {
			const whose = account === undefined ? {} : { accountId: (await getAccount(statements, account)).id };
			return listTopUps(statements, { ...whose, ...(state === undefined ? {} : { state }) }, parsePage(input));
		});
		return listOutput(page, topUpJson, ["ID", "ACCOUNT", "USD", "STATUS", "METHOD", "REFERENCE", "CREATED"]);
	},
};

type Asked = Omit<Parameters<typeof bookAdjustment>[1], "accountId" | "operatorId" | "ip">;

async function book({ statements, url }: DatabaseSession, input: CommandInput, asked: Asked, from: number | null) {
	const { id: accountId } = await getAccount(statements, input.required("account"));
	const client = createTransactional({ clock: systemClock, log: silentLog }, { ...TRANSACTION, url });
	const booked = bookAdjustment(client.tx, { accountId, ...asked, operatorId: ACTOR, ip: null }, from);
	return booked.finally(() => client.end());
}

const topUpJson = (topUp: TopUpRecord) => ({
	id: topUp.id,
	account: topUp.accountId,
	usd: formatUsd(topUp.amountNanoUsd),
	status: topUp.state,
	...jsonFields("method reference created_at decided_at decided_by", topUp),
});
