import { Checkbox, Stack } from "@mantine/core";
import { useState } from "react";
import { MANAGEMENT_SCOPES } from "../../keys/management-scope.ts";
import { stateText } from "../labels.ts";
import { SecretDialog } from "../pages/key-create.tsx";
import { KEY_COLUMN } from "../parts/account-tables.tsx";
import { ActDialog } from "../parts/dialog.tsx";
import { TextField, useField } from "../parts/fields.tsx";
import { ActButton, LinkButton } from "../parts/form.tsx";
import { Empty, Page, State } from "../parts/page.tsx";
import { fromList, TablePanel } from "../parts/table.tsx";
import { Day, RelativeTime, TruncatedText } from "../parts/text.tsx";
import { useAction, useList } from "../resource.ts";
import { rich, t } from "../texts.tsx";
import { type RepeatableSend, useAttempt } from "../token.ts";
import { type ManagementKeyRow, operatorApi } from "./api.ts";
import { useDecision } from "./decision.tsx";

const TONES = { active: "ok", expired: "off", revoked: "off", orphaned: "warn" } as const;

export function ManagementKeysPage() {
	const list = useList("operator-management-keys", operatorApi.managementKeys);
	const [creating, setCreating] = useState(false);
	// Kept outside the dialog: a retry in a reopened dialog sends the same token and creates no second key.
	const attempt = useAttempt();
	const [dialog, revoke] = useDecision<ManagementKeyRow>(
		({ id, name }) => ({
			title: t("Revoke the management key"),
			about: (
				<p>
					{rich("Scripts that use {name} stop working. API keys that it created stay.", {
						name: <strong>{name}</strong>,
					})}
				</p>
			),
			act: t("Revoke"),
			danger: true,
			run: async () => void (await operatorApi.revokeManagementKey(id)),
		}),
		() => void list.reload(),
	);
	return (
		<Page
			title={t("Management keys")}
			lead={t("For scripts. A management key works only for /v1/management/ and acts on behalf of its creator.")}
			aside={
				<ActButton label={t("Create a management key")} look="main" icon="plus" onClick={() => setCreating(true)} />
			}
		>
			<TablePanel
				title={t("Management keys")}
				{...fromList(list)}
				empty={<Empty title={t("No management keys yet.")} />}
				columns={[
					{ label: t("Name"), lead: true, render: (key) => <TruncatedText text={key.name} /> },
					KEY_COLUMN,
					{
						label: t("State"),
						corner: true,
						render: (key) => <State value={key.state} label={stateText(key.state)} tone={TONES[key.state]} />,
					},
					{ label: t("Scopes"), render: (key) => <span className="small">{key.scopes.join(", ")}</span> },
					{
						label: t("Created by"),
						clip: true,
						render: (key) => <TruncatedText text={key.madeByEmail ?? t("Command line")} />,
					},
					{
						label: t("Expires"),
						render: (key) => (key.expiresAtMs === null ? t("Never") : <Day atMs={key.expiresAtMs} />),
					},
					{ label: t("Last used"), render: (key) => <RelativeTime atMs={key.lastUsedAtMs} /> },
				]}
				act={(key) =>
					key.revokedAtMs === null && (
						<LinkButton aria-label={t("Revoke {name}", { name: key.name })} onClick={() => revoke(key)}>
							{t("Revoke")}
						</LinkButton>
					)
				}
			/>
			{creating && (
				<CreateDialog attempt={attempt} onClose={() => setCreating(false)} onCreated={() => void list.reload()} />
			)}
			{dialog}
		</Page>
	);
}

function CreateDialog(props: { attempt: RepeatableSend; onClose: () => void; onCreated: () => void }) {
	const name = useField();
	const [scopes, setScopes] = useState<string[]>([]);
	const ends = useField();
	const [secret, setSecret] = useState<string>();
	const create = useAction(async () => {
		const expiresAtMs = ends.value === "" ? null : Date.parse(`${ends.value}T00:00:00Z`);
		const asked = { name: name.value.trim(), scopes, expiresAtMs };
		const made = await props.attempt.send(asked, (token) => operatorApi.createManagementKey(asked, token));
		setSecret(made.secret);
		props.onCreated();
	});
	if (secret !== undefined)
		return (
			<SecretDialog
				secret={secret}
				title={t("Management key created")}
				variable="TOLLGATE_MANAGEMENT_KEY"
				onStored={props.onClose}
			/>
		);
	return (
		<ActDialog
			onClose={props.onClose}
			title={t("Create a management key")}
			closeOnClickOutside={false}
			held={create.busy}
			action={create}
			act={t("Create")}
			disabled={name.value.trim() === "" || scopes.length === 0}
		>
			<TextField
				label={t("Name")}
				description={t("What the key is for, for example terraform")}
				data-autofocus
				maxLength={100}
				{...name}
			/>
			<Checkbox.Group
				label={t("Scopes")}
				description={t("Write scopes do not include read access")}
				value={scopes}
				onChange={setScopes}
			>
				<Stack gap={14}>
					{MANAGEMENT_SCOPES.map((scope) => (
						<Checkbox key={scope} value={scope} label={scope} />
					))}
				</Stack>
			</Checkbox.Group>
			<TextField
				required={false}
				type="date"
				// Browsers accept five-digit years but cannot parse them.
				max="9999-12-31"
				label={t("Expires")}
				description={t("At the start of this day (UTC). Leave empty for no expiry.")}
				{...ends}
			/>
		</ActDialog>
	);
}
