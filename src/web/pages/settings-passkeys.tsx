import { Button, Group } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { authApi } from "../auth-api.ts";
import { TextField } from "../parts/fields.tsx";
import { Form, LinkButton } from "../parts/form.tsx";
import { Panel } from "../parts/page.tsx";
import { Empty, Problem } from "../parts/problem.tsx";
import { DataTable, fromItems } from "../parts/table.tsx";
import { Ago } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { t } from "../texts.tsx";

/** The viewer's passkeys, for signing in without a password. */
export function PasskeysPanel() {
	const passkeys = useResource("passkeys", api.passkeys);
	const [name, setName] = useState("");
	const add = useAction(async () => {
		const { startRegistration } = await import("@simplewebauthn/browser");
		const optionsJSON = await authApi.beginPasskey();
		await authApi.endPasskey(name.trim(), await startRegistration({ optionsJSON }));
		setName("");
		await passkeys.reload();
	});
	const remove = useAction(async (id: string) => {
		await api.removePasskey(id);
		await passkeys.reload();
	});
	const failure = add.error ?? remove.error;
	return (
		<Panel title={t("Passkeys")} flush>
			{failure && <Problem error={failure} />}
			<DataTable
				label={t("Passkeys")}
				{...fromItems(passkeys)}
				rowKey={(item) => item.id}
				empty={
					<Empty title={t("No passkeys.")}>
						{t("A passkey signs you in by finger, face or PIN of a device, and is good for this site alone.")}
					</Empty>
				}
				columns={[
					{ label: t("Name"), lead: true, render: (item) => item.name },
					{ label: t("Added"), render: (item) => <Ago atMs={item.createdAtMs} /> },
					{ label: t("Last used"), render: (item) => <Ago atMs={item.lastUsedAtMs} /> },
					{
						label: t("Action"),
						act: true,
						right: true,
						render: (item) => <LinkButton onClick={() => void remove.run(item.id)}>{t("Remove")}</LinkButton>,
					},
				]}
			/>
			<Form onSubmit={add.run}>
				<Group align="flex-end" gap="xs">
					<TextField
						label={t("Name of a new one")}
						placeholder={t("Laptop")}
						size="xs"
						maxLength={60}
						value={name}
						onChange={setName}
					/>
					<Button type="submit" size="xs" variant="default" loading={add.busy}>
						{t("Add a passkey")}
					</Button>
				</Group>
			</Form>
		</Panel>
	);
}
