import { isoOrNull } from "../base/iso-date.ts";
import type { TopUpRecord, TopUpState } from "../billing/top-ups.ts";
import { confirmTopUp, createTopUp, listTopUps, rejectTopUp } from "../billing/top-ups.ts";
import { formatUsd } from "../money/nano-usd.ts";
import { namedAccount } from "./account-commands.ts";
import type { Command } from "./command.ts";
import { UsageError } from "./command.ts";
import { PAGE_OPTIONS, pageOf, usdOf } from "./option-values.ts";
import { listOutput } from "./table.ts";

/** The deciding person's name in the books. */
const ACTOR = "cli";
const STATES: readonly TopUpState[] = ["pending", "confirmed", "rejected", "refunded", "disputed"];

const create: Command = {
	name: "topup create",
	summary: "write down a transfer that is expected",
	arguments: [],
	options: {
		account: { type: "string", value: "ID", required: true, help: "the account that pays" },
		usd: { type: "string", value: "USD", required: true, help: "the amount; at least 100" },
		reference: { type: "string", value: "R", required: true, help: "the payment's reference; each is credited once" },
	},
	details: "It gives no credit until it is confirmed.",
	async run({ withDatabase }, input) {
		const amountNanoUsd = usdOf("usd", input.required("usd"));
		const topUp = {
			accountId: input.required("account"),
			amountNanoUsd,
			method: "transfer",
			reference: input.required("reference"),
		} as const;
		const { id, state } = await withDatabase(({ statements }) => createTopUp(statements, topUp));
		return { json: { id, status: state }, text: `top-up ${id} is ${state}` };
	},
};

const confirm: Command = {
	name: "topup confirm",
	summary: "the payment was verified: give the credit",
	arguments: ["ID"],
	options: {},
	details: "Confirming it again changes nothing.",
	async run({ withDatabase }, input) {
		const { id, state, seq } = await withDatabase(({ statements }) =>
			confirmTopUp(statements, input.argument(0), ACTOR),
		);
		return {
			json: { status: state },
			text: seq === null ? `top-up ${id} was confirmed before` : `top-up ${id} is confirmed`,
		};
	},
};

const reject: Command = {
	name: "topup reject",
	summary: "the payment did not come",
	arguments: ["ID"],
	options: {},
	async run({ withDatabase }, input) {
		const { id, state } = await withDatabase(({ statements }) => rejectTopUp(statements, input.argument(0), ACTOR));
		return { json: { status: state }, text: `top-up ${id} is rejected` };
	},
};

const list: Command = {
	name: "topup list",
	summary: "top-ups",
	arguments: [],
	options: {
		account: { type: "string", value: "ID", help: "only this account's" },
		status: { type: "string", value: "STATUS", help: `only these: ${STATES.join(", ")}` },
		...PAGE_OPTIONS,
	},
	async run({ withDatabase }, input) {
		const account = input.option("account");
		const status = input.option("status");
		const state = STATES.find((one) => one === status);
		if (status !== undefined && state === undefined) throw new UsageError(`--status takes one of ${STATES.join(", ")}`);
		const page = await withDatabase(async ({ statements }) => {
			const whose = account === undefined ? {} : { accountId: (await namedAccount(statements, account)).id };
			return listTopUps(statements, { ...whose, ...(state === undefined ? {} : { state }) }, pageOf(input));
		});
		const head = ["ID", "ACCOUNT", "USD", "STATUS", "METHOD", "REFERENCE", "CREATED"];
		return listOutput(page, head, topUpJson, (row) => [
			row.id,
			row.accountId,
			formatUsd(row.amountNanoUsd),
			row.state,
			row.method,
			row.reference,
			new Date(row.createdAtMs).toISOString(),
		]);
	},
};

export const topUpCommands: readonly Command[] = [create, confirm, reject, list];

function topUpJson(topUp: TopUpRecord): Record<string, unknown> {
	return {
		id: topUp.id,
		account: topUp.accountId,
		usd: formatUsd(topUp.amountNanoUsd),
		status: topUp.state,
		method: topUp.method,
		reference: topUp.reference,
		created_at: isoOrNull(topUp.createdAtMs),
		decided_at: isoOrNull(topUp.decidedAtMs),
		decided_by: topUp.decidedBy,
	};
}
