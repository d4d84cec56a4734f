import { isoOrNull } from "../base/iso-date.ts";
import { createOperator, listOperators, revokeOperator } from "../console/operator/operator-admin.ts";
import { addressOf } from "../planes/listening-address.ts";
import type { Command } from "./command.ts";
import { listOutput } from "./table.ts";

const create: Command = {
	name: "operator create",
	summary: "let somebody manage the whole service in the console",
	arguments: [],
	makesDatabase: true,
	options: { email: { type: "string", value: "E", required: true, help: "the operator's e-mail address" } },
	details: "Prints a link, good for a day and for one use, at which the operator sets a password.",
	async run({ withDatabase, config }, input) {
		const email = input.required("email");
		const { id, token } = await withDatabase(({ statements }) => createOperator(statements, email));
		const { publicUrl, host, port } = config();
		const origin = publicUrl ?? addressOf(host, port);
		const link = token === null ? null : `${origin}/reset?token=${token}`;
		const text = link === null ? `${email} is an operator` : `${email} is an operator; set the password at\n${link}`;
		return { json: { id, link }, text };
	},
};

const revoke: Command = {
	name: "operator revoke",
	summary: "end an operator's rights and sessions",
	arguments: [],
	options: { email: { type: "string", value: "E", required: true, help: "the operator's e-mail address" } },
	async run({ withDatabase }, input) {
		const { id } = await withDatabase(({ statements }) => revokeOperator(statements, input.required("email")));
		return { json: { id }, text: `${input.required("email")} is no operator any more` };
	},
};

const list: Command = {
	name: "operator list",
	summary: "all operators",
	arguments: [],
	options: {},
	async run({ withDatabase }) {
		const items = await withDatabase(({ statements }) => listOperators(statements));
		return listOutput(
			{ items, next: null },
			["ID", "E-MAIL"],
			({ id, email, createdAtMs }) => ({ id, email, created_at: isoOrNull(createdAtMs) }),
			({ id, email }) => [id, email],
		);
	},
};

export const operatorCommands: readonly Command[] = [create, revoke, list];
