import { createOperator, listOperators, revokeOperator } from "../console/operator/operator-admin.ts";
import type { KeyCreator, ManagementKeyRecord } from "../keys/management-key-admin.ts";
import {
	COMMAND_LINE_CREATOR,
	createManagementKey,
	listManagementKeys,
	revokeManagementKey,
} from "../keys/management-key-admin.ts";
import { MANAGEMENT_SCOPES } from "../keys/management-scope.ts";
import { jsonFields } from "../money/json-fields.ts";
import { listeningUrl } from "../planes/listening-address.ts";
import { type CommandRuns, UsageError } from "./command.ts";
import { formatNewKey, keyMaker } from "./key-commands.ts";
import { parseDateMs, parseNames, parsePage, secretText } from "./setting-options.ts";
import { listOutput } from "./table.ts";

const BY_COMMAND: KeyCreator = { id: COMMAND_LINE_CREATOR, ip: null };

export const operatorCommands: CommandRuns = {
	async "operator create"({ withDatabase, config }, input) {
		const email = input.required("email");
		const { id, token } = await withDatabase(({ statements }) => createOperator(statements, email));
		const { publicUrl, host, port } = config();
		const origin = publicUrl ?? listeningUrl(host, port);
		const link = token === null ? null : `${origin}/reset?token=${token}`;
		const text = link === null ? `${email} is an operator` : `${email} is an operator. Set the password at\n${link}`;
		return { json: { id, link }, text };
	},
	async "operator revoke"({ withDatabase }, input) {
		const { id } = await withDatabase(({ statements }) => revokeOperator(statements, input.required("email")));
		return { json: { id }, text: `${input.required("email")} is no longer an operator` };
	},
	async "operator list"({ withDatabase }) {
		const items = await withDatabase(({ statements }) => listOperators(statements));
		return listOutput({ items, next: null }, (row) => jsonFields("id email created_at", row), ["ID", "E-MAIL"]);
	},
	async "management-key create"(context, input) {
		const scopes = input.required("scopes");
		const expires = input.option("expires");
		const expiresAtMs = expires === undefined ? null : parseDateMs("expires", expires);
		if (expiresAtMs !== null && expiresAtMs <= Date.now()) throw new UsageError("--expires is in the past");
		const wanted = {
			name: input.required("name"),
			scopes: scopes === "all" ? MANAGEMENT_SCOPES : parseNames("scopes", scopes),
			expiresAtMs,
		};
		const made = await context.withDatabase(({ statements }) =>
			createManagementKey(keyMaker(context, statements), wanted, BY_COMMAND),
		);
		return formatNewKey(made, "management key");
	},
	async "management-key list"({ withDatabase }, input) {
		const page = await withDatabase(({ statements }) => listManagementKeys(statements, parsePage(input)));
		const columns = ["ID", "NAME", "SECRET", "STATE", "SCOPES", "MADE BY", "EXPIRES", "LAST USED"];
		return listOutput(page, managementKeyJson, columns, {
			SECRET: secretText,
			"MADE BY": (row) => row.madeByEmail ?? row.madeBy,
		});
	},
	async "management-key revoke"({ withDatabase }, input) {
		const id = input.argument(0);
		await withDatabase(({ statements }) => revokeManagementKey(statements, id, BY_COMMAND));
		return { json: { id, state: "revoked" }, text: `${id} is revoked` };
	},
};

const MANAGEMENT_KEY =
	"id name prefix last_four state scopes made_by expires_at created_at last_used_at revoked_at" as const;
const managementKeyJson = (key: ManagementKeyRecord) => jsonFields(MANAGEMENT_KEY, key);
