import { isoOrNull } from "../base/iso-date.ts";
import { createOperator, listOperators, revokeOperator } from "../console/operator/operator-admin.ts";
import { addressOf } from "../planes/listening-address.ts";
import type { CommandRuns } from "./command.ts";
import { listOutput } from "./table.ts";

export const operatorCommands: CommandRuns = {
	async "operator create"({ withDatabase, config }, input) {
		const email = input.required("email");
		const { id, token } = await withDatabase(({ statements }) => createOperator(statements, email));
		const { publicUrl, host, port } = config();
		const origin = publicUrl ?? addressOf(host, port);
		const link = token === null ? null : `${origin}/reset?token=${token}`;
		const text = link === null ? `${email} is an operator` : `${email} is an operator; set the password at\n${link}`;
		return { json: { id, link }, text };
	},
	async "operator revoke"({ withDatabase }, input) {
		const { id } = await withDatabase(({ statements }) => revokeOperator(statements, input.required("email")));
		return { json: { id }, text: `${input.required("email")} is no operator any more` };
	},
	async "operator list"({ withDatabase }) {
		const items = await withDatabase(({ statements }) => listOperators(statements));
		const json = ({ id, email, createdAtMs }: (typeof items)[number]) => ({
			id,
			email,
			created_at: isoOrNull(createdAtMs),
		});
		return listOutput({ items, next: null }, json, ["ID", "E-MAIL"]);
	},
};
