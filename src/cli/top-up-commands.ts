import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import { bookAdjustment, checkAdjustment } from "../billing/adjustments.ts";
import type { TopUpRecord } from "../billing/top-ups.ts";
import { confirmTopUp, createTopUp, listTopUps, rejectTopUp, TOP_UP_STATES } from "../billing/top-ups.ts";
import { createTransactional } from "../db/transactional.ts";
import { getAccount } from "../keys/account-admin.ts";
import { jsonFields } from "../money/json-fields.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { type CommandRuns, UsageError } from "./command.ts";
import { parsePage, parseUsdOption } from "./setting-options.ts";
import { listOutput } from "./table.ts";

/** Actor of these entries in the books and the audit log. */
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
		const { id, state } = await withDatabase(async ({ statements, url }) => {
			const { id: accountId } = await getAccount(statements, input.required("account"));
			const asked = { accountId, amount, promotion, reason, idempotencyKey, operatorId: ACTOR, ip: null };
			const client = createTransactional({ clock: systemClock, log: silentLog }, { ...TRANSACTION, url });
			return bookAdjustment(client.tx, asked, config().topUpSecondLook).finally(() => client.end());
		});
		return { json: { id, status: state }, text: `promotional credit ${id} is ${state}` };
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

const topUpJson = (topUp: TopUpRecord) => ({
	id: topUp.id,
	account: topUp.accountId,
	usd: formatUsd(topUp.amountNanoUsd),
	status: topUp.state,
	...jsonFields("method reference created_at decided_at decided_by", topUp),
});
