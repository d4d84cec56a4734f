import { Button, Group, Select, Stack } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Form, LinkButton } from "../parts/form.tsx";
import { Panel } from "../parts/page.tsx";
import { Empty, Problem } from "../parts/problem.tsx";
import { DataTable, fromItems } from "../parts/table.tsx";
import { Moment } from "../parts/text.tsx";
import { useAction, useResource } from "../resource.ts";
import { useAccount, useMay } from "../session.tsx";
import { isolated, t } from "../texts.tsx";
import type { ProjectMemberView, ProjectView } from "../views.ts";

/** Members of the project: developers see and create only the keys of their projects. */
export function ProjectMembers({ item }: { item: ProjectView }) {
	const account = useAccount();
	const may = useMay();
	const mayChange = may("projects.change") && item.state === "active";
	const members = useResource(`project-members ${account.id} ${item.id}`, () =>
		api.projectMembers(account.id, item.id),
	);
	const [leaving, setLeaving] = useState<ProjectMemberView>();
	const remove = useAction(async (member: ProjectMemberView, keys: "keep" | "revoke" | null) => {
		try {
			await api.removeProjectMember(account.id, item.id, member.userId, keys);
		} catch (error) {
			if (keys === null && (error as { param?: string | null }).param === "keys") return setLeaving(member);
			throw error;
		}
		setLeaving(undefined);
		await members.reload();
	});
	return (
		<Panel flush title={t("People")}>
			{remove.error && <Problem error={remove.error} />}
			<DataTable
				label={t("People of this project")}
				{...fromItems(members)}
				rowKey={(member) => member.userId}
				empty={
					<Empty title={t("Nobody yet.")}>
						{t("Developers see and make the keys of the projects that they work in. Owners and admins see all.")}
					</Empty>
				}
				columns={[
					{ label: t("Name"), lead: true, render: (member) => member.name },
					{ label: t("Email"), render: (member) => member.email },
					{ label: t("Since"), render: (member) => <Moment atMs={member.joinedAtMs} /> },
					{
						label: t("Action"),
						act: true,
						render: (member) =>
							mayChange ? <LinkButton onClick={() => void remove.run(member, null)}>{t("Remove")}</LinkButton> : null,
					},
				]}
			/>
			{mayChange && (
				<AddForm
					projectId={item.id}
					known={members.data?.items.map(({ userId }) => userId)}
					onAdded={() => void members.reload()}
				/>
			)}
			{leaving && (
				<Dialog onClose={() => setLeaving(undefined)} title={t("Remove {name}", { name: leaving.name })}>
					<Stack gap={14}>
						<p>
							{t(
								"{name} made keys of this project that still work, and may have kept their secrets. Kept, they go on working; revoked, they are refused everywhere at once.",
								{ name: leaving.name },
							)}
						</p>
						<Group justify="flex-end" gap="xs">
							<Button variant="default" loading={remove.busy} onClick={() => void remove.run(leaving, "keep")}>
								{t("Keep the keys")}
							</Button>
							<Button color="red" loading={remove.busy} onClick={() => void remove.run(leaving, "revoke")}>
								{t("Revoke the keys")}
							</Button>
						</Group>
					</Stack>
				</Dialog>
			)}
		</Panel>
	);
}

function AddForm(props: { projectId: string; known: readonly string[] | undefined; onAdded: () => void }) {
	const account = useAccount();
	const [chosen, setChosen] = useState<string | null>(null);
	const all = useResource(`members ${account.id}`, () => api.members(account.id));
	const add = useAction(async () => {
		if (chosen === null) return;
		await api.addProjectMember(account.id, props.projectId, chosen);
		setChosen(null);
		props.onAdded();
	});
	const others = all.data?.items.filter(({ userId }) => props.known?.includes(userId) === false) ?? [];
	if (others.length === 0) return null;
	return (
		<Form onSubmit={add.run} error={add.error}>
			<Group align="flex-end" gap="xs">
				<Select
					label={t("Add a member of the account")}
					size="xs"
					data={others.map(({ userId, name, email }) => ({ value: userId, label: `${isolated(name)} (${email})` }))}
					searchable
					value={chosen}
					onChange={setChosen}
					nothingFoundMessage={t("No such member")}
				/>
				<Button type="submit" size="xs" variant="default" loading={add.busy} disabled={chosen === null}>
					{t("Add")}
				</Button>
			</Group>
		</Form>
	);
}
