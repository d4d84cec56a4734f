import { Button, Checkbox, Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { MANAGEMENT_SCOPES } from "../../../keys/management-scope.ts";
import { SecretDialog } from "../pages/key-create.tsx";
import { Icon } from "../parts/icons.tsx";
import { capital, Page, Panel, State } from "../parts/page.tsx";
import { Empty, Problem } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Clipped, Day } from "../parts/text.tsx";
import { useAction, useList } from "../resource.ts";
import { operatorApi } from "./api.ts";
import { DecisionDialog } from "./decision-dialog.tsx";
import type { ManagementKeyRow } from "./views.ts";

const TONES = { active: "ok", expired: "off", revoked: "off", orphaned: "warn" } as const;

export function ManagementKeysPage() {
	const list = useList("operator-management-keys", operatorApi.managementKeys);
	const [creating, setCreating] = useState(false);
	const [revoking, setRevoking] = useState<ManagementKeyRow>();
	const create = (
		<Button size="xs" leftSection={<Icon name="plus" />} onClick={() => setCreating(true)}>
			Create a management key
		</Button>
	);
	return (
		<Page
			title="Management keys"
			lead="For scripts: they open /v1/management/ and nothing else, and act for who made them."
			aside={create}
		>
			<Panel flush>
				<DataTable
					label="Management keys"
					rows={list.items}
					rowKey={(key) => key.id}
					error={list.error}
					retry={() => void list.reload()}
					more={{ next: list.next, busy: list.more.busy, error: list.more.error, load: () => void list.more.run() }}
					empty={<Empty title="No management keys yet." />}
					columns={[
						{ label: "Name", lead: true, render: (key) => <Clipped text={key.name} /> },
						{
							label: "Key",
							render: (key) => (
								<code>
									{key.prefix}…{key.lastFour}
								</code>
							),
						},
						{
							label: "State",
							corner: true,
							render: (key) => <State value={key.state} label={capital(key.state)} tone={TONES[key.state]} />,
						},
						{ label: "Scopes", render: (key) => <span className="small">{key.scopes.join(", ")}</span> },
						{ label: "Made by", clip: true, render: (key) => <Clipped text={key.madeByEmail ?? "Command line"} /> },
						{
							label: "Ends",
							render: (key) => (key.expiresAtMs === null ? "Never" : <Day atMs={key.expiresAtMs} />),
						},
						{ label: "Last used", render: (key) => <Ago atMs={key.lastUsedAtMs} /> },
						{
							label: "Act",
							render: (key) =>
								key.revokedAtMs === null && (
									<Button
										size="compact-xs"
										variant="default"
										aria-label={`Revoke ${key.name}`}
										onClick={() => setRevoking(key)}
									>
										Revoke
									</Button>
								),
						},
					]}
				/>
			</Panel>
			{creating && <CreateDialog onClose={() => setCreating(false)} onCreated={() => void list.reload()} />}
			{revoking && (
				<DecisionDialog
					title="Revoke the management key"
					about={
						<p>
							Every script that uses <strong>{revoking.name}</strong> is refused from now on. API keys that it made
							stay.
						</p>
					}
					act="Revoke"
					danger
					run={async () => {
						await operatorApi.revokeManagementKey(revoking.id);
						setRevoking(undefined);
						void list.reload();
					}}
					onClose={() => setRevoking(undefined)}
				/>
			)}
		</Page>
	);
}

function CreateDialog(props: { onClose: () => void; onCreated: () => void }) {
	const [name, setName] = useState("");
	const [scopes, setScopes] = useState<string[]>([]);
	const [ends, setEnds] = useState("");
	const [secret, setSecret] = useState<string>();
	const create = useAction(async () => {
		const expiresAtMs = ends === "" ? null : Date.parse(`${ends}T00:00:00Z`);
		const made = await operatorApi.createManagementKey({ name: name.trim(), scopes, expiresAtMs });
		setSecret(made.secret);
		props.onCreated();
	});
	if (secret !== undefined)
		return (
			<SecretDialog
				secret={secret}
				title="Management key created"
				variable="TOLLGATE_MANAGEMENT_KEY"
				onStored={props.onClose}
			/>
		);
	return (
		<Modal
			opened
			onClose={props.onClose}
			title="Create a management key"
			closeButtonProps={{ "aria-label": "Close" }}
			closeOnClickOutside={false}
		>
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					void create.run();
				}}
			>
				<TextInput
					label="Name"
					description="What it is for, as terraform"
					required
					withAsterisk={false}
					data-autofocus
					maxLength={100}
					value={name}
					onChange={(event) => setName(event.currentTarget.value)}
				/>
				<Checkbox.Group
					label="Scopes"
					description="Changing does not include reading"
					value={scopes}
					onChange={setScopes}
				>
					<div className="stack">
						{MANAGEMENT_SCOPES.map((scope) => (
							<Checkbox key={scope} value={scope} label={scope} />
						))}
					</div>
				</Checkbox.Group>
				<TextInput
					type="date"
					label="Ends"
					description="Its first moment in UTC; empty: never"
					value={ends}
					onChange={(event) => setEnds(event.currentTarget.value)}
				/>
				{create.error && <Problem error={create.error} />}
				<div className="form-end">
					<Button variant="default" onClick={props.onClose}>
						Cancel
					</Button>
					<Button type="submit" disabled={name.trim() === "" || scopes.length === 0} loading={create.busy}>
						Create
					</Button>
				</div>
			</form>
		</Modal>
	);
}
