import { Select } from "@mantine/core";
import { useState } from "react";
import { api, type ProjectMemberView, type ProjectView } from "../api.ts";
import { CapBar } from "../parts/cap-bar.tsx";
import { ActDialog, EndDialog, KeysDialog } from "../parts/dialog.tsx";
import { ActButton, LineForm, LinkButton } from "../parts/form.tsx";
import { DetailList, Empty, ErrorMessage, LoadState, Page, Panel, State } from "../parts/page.tsx";
import { type Column, fromItems, fromList, TablePanel } from "../parts/table.tsx";
import { Amount, CopyableId, Timestamp } from "../parts/text.tsx";
import { useAction, useList, useResource } from "../resource.ts";
import { Link, navigate, useCreateDialog } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { formatCount, isolatedText, rich, t } from "../texts.tsx";
import { type RepeatableSend, useAttempt } from "../token.ts";
import { KeyCreateDialog } from "./key-create.tsx";
import { EMPTY_DRAFT, KeyFields, SettingsDialog, settingsOf } from "./key-form.tsx";
import { KEY_COLUMNS, limitsText } from "./keys.tsx";

export default function ProjectPages({ id }: { id: string }) {
	return id === "" ? <ProjectList /> : <ProjectPage id={id} />;
}

function ProjectPage({ id }: { id: string }) {
	const account = useAccount();
	const may = useMay();
	const project = useResource(`project ${account.id} ${id}`, () => api.project(account.id, id));
	const [dialog, setDialog] = useState<"edit" | "archive">();
	const item = project.data;
	const close = () => {
		setDialog(undefined);
		void project.reload();
	};
	const actions = item?.state === "active" && may("projects.change") && (
		<>
			<ActButton label={t("Edit")} onClick={() => setDialog("edit")} />
			<ActButton label={t("Archive")} look="danger" onClick={() => setDialog("archive")} />
		</>
	);

	return (
		<Page title={item?.name ?? t("Project")} aside={actions}>
			<LoadState of={project} height={220} />
			{item && (
				<>
					<ProjectFacts item={item} />
					<ProjectKeys item={item} onCreated={() => void project.reload()} />
					<ProjectMembers item={item} />
					{dialog === "edit" && (
						<SettingsDialog
							title={t("Edit the project")}
							item={item}
							fields={{ ofProject: true }}
							onSave={(changes) => api.editProject(account.id, id, changes)}
							onClose={close}
						/>
					)}
					{dialog === "archive" && <ArchiveDialog item={item} onClose={close} />}
				</>
			)}
		</Page>
	);
}

function ProjectFacts({ item }: { item: ProjectView }) {
	return (
		<Panel title={t("Project")}>
			<DetailList
				of={{
					[t("State")]: <State value={item.state} />,
					[t("Id")]: <CopyableId value={item.id} label={t("Copy the project's id")} />,
					[t("Cap")]: <CapBar item={item} />,
					[t("Total spent")]: <Amount nanoUsd={item.spentNanoUsd} />,
					[t("Models")]: item.models.join(", ") || t("All available models"),
					[t("Limits")]: limitsText(item),
					[t("Created")]: <Timestamp atMs={item.createdAtMs} />,
					[t("Archived")]: item.archivedAtMs !== null && <Timestamp atMs={item.archivedAtMs} />,
				}}
			/>
		</Panel>
	);
}

function ProjectKeys({ item, onCreated }: { item: ProjectView; onCreated: () => void }) {
	const account = useAccount();
	const may = useMay();
	const [isOpen, setOpen] = useState(false);
	const list = useList(`project-keys ${account.id} ${item.id}`, (after) => api.keys(account.id, after, item.id));
	const create = item.state === "active" && may("keys.change") && (
		<ActButton label={t("Create a key")} icon="plus" onClick={() => setOpen(true)} />
	);
	return (
		<TablePanel
			title={t("Keys")}
			label={t("Keys of this project")}
			aside={create}
			columns={KEY_COLUMNS.filter(({ label }) => label !== t("Project"))}
			{...fromList(list)}
			empty={<Empty title={t("No keys yet.")}>{t("Create a key here, or set the project on a key's page.")}</Empty>}
		>
			<KeyCreateDialog
				open={isOpen}
				projectId={item.id}
				onClose={() => setOpen(false)}
				onCreated={() => {
					void list.reload();
					onCreated();
				}}
			/>
		</TablePanel>
	);
}

function ArchiveDialog({ item, onClose }: { item: ProjectView; onClose: () => void }) {
	const account = useAccount();
	return (
		<EndDialog
			title={t("Archive the project")}
			name={item.name}
			label={t("Type the project's name: {name}", { name: item.name })}
			act={t("Archive")}
			run={() => api.archiveProject(account.id, item.id)}
			done={t("No instance accepts a key of this project")}
			onClose={onClose}
		>
			{rich(
				"Applications that use a key of {name} stop working immediately. This cannot be undone. Running requests finish and are charged.",
				{ name: <strong>{item.name}</strong> },
			)}
		</EndDialog>
	);
}

/** Members of the project. Developers see and create keys only in projects of which they are members. */
function ProjectMembers({ item }: { item: ProjectView }) {
	const account = useAccount();
	const mayChange = useMay()("projects.change") && item.state === "active";
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
		<TablePanel
			title={t("Members")}
			label={t("Members of this project")}
			{...fromItems(members)}
			rowKey={(member) => member.userId}
			empty={
				<Empty title={t("No members yet.")}>
					{t("Developers see and create keys of their own projects only. Owners and admins see all keys.")}
				</Empty>
			}
			columns={[
				{ label: t("Name"), lead: true, render: (member) => member.name },
				{ label: t("Email"), render: (member) => member.email },
				{ label: t("Since"), render: (member) => <Timestamp atMs={member.joinedAtMs} /> },
			]}
			act={(member) =>
				mayChange && <LinkButton onClick={() => void remove.run(member, null)}>{t("Remove")}</LinkButton>
			}
		>
			{remove.error && !leaving && <ErrorMessage error={remove.error} />}
			{mayChange && (
				<AddForm
					projectId={item.id}
					known={members.data?.items.map(({ userId }) => userId)}
					onAdded={() => void members.reload()}
				/>
			)}
			{leaving && (
				<KeysDialog
					onClose={() => setLeaving(undefined)}
					title={t("Remove {name}", { name: leaving.name })}
					action={{ ...remove, run: (keys) => remove.run(leaving, keys) }}
					keep={t("Keep the keys")}
					revoke={t("Revoke the keys")}
				>
					<p>
						{t(
							"{name} created keys of this project that are still active. Keep them active, or revoke them on all instances now.",
							{ name: leaving.name },
						)}
					</p>
				</KeysDialog>
			)}
		</TablePanel>
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
		<LineForm action={add} act={t("Add")} disabled={chosen === null}>
			<Select
				label={t("Add a member of the account")}
				size="xs"
				data={others.map(({ userId, name, email }) => ({ value: userId, label: `${isolatedText(name)} (${email})` }))}
				searchable
				value={chosen}
				onChange={setChosen}
				nothingFoundMessage={t("No members found")}
			/>
		</LineForm>
	);
}

const COLUMNS: readonly Column<ProjectView>[] = [
	{ label: t("Name"), lead: true, render: (project) => <Link to={`/projects/${project.id}`}>{project.name}</Link> },
	{ label: t("State"), corner: true, render: (project) => <State value={project.state} /> },
	{ label: t("Keys"), right: true, render: (project) => formatCount(project.keys) },
	{
		label: t("Models"),
		render: (project) => (project.models.length === 0 ? t("All") : formatCount(project.models.length)),
	},
	{ label: t("Cap"), render: (project) => <CapBar item={project} small /> },
	{ label: t("Spent"), amount: (project) => project.spentNanoUsd },
];

function ProjectList() {
	const account = useAccount();
	const may = useMay();
	const [isOpen, setOpen] = useCreateDialog();
	// Kept outside the dialog: a retry in a reopened dialog sends the same token and creates no second project.
	const attempt = useAttempt();
	const list = useList(`projects ${account.id}`, (after) => api.projects(account.id, after));
	const create = may("projects.change") && (
		<ActButton label={t("Create a project")} look="main" icon="plus" onClick={() => setOpen(true)} />
	);
	return (
		<Page
			title={t("Projects")}
			lead={t("Group keys under a shared budget, with the members who use them.")}
			aside={create}
		>
			<TablePanel
				title={t("Projects")}
				columns={COLUMNS}
				{...fromList(list)}
				empty={
					<Empty title={t("No projects yet.")} action={create}>
						{t(
							"The keys of a project share its cap, models and limits. Spend counts against the project's cap and the key's own.",
						)}
					</Empty>
				}
			/>
			{isOpen && may("projects.change") && (
				<CreateDialog {...{ accountId: account.id, attempt }} onClose={() => setOpen(false)} />
			)}
		</Page>
	);
}

function CreateDialog(props: { accountId: string; attempt: RepeatableSend; onClose: () => void }) {
	const { accountId, attempt, onClose } = props;
	const [draft, setDraft] = useState(EMPTY_DRAFT);
	const create = useAction(async () => {
		const input = settingsOf(draft, "create");
		const { id } = await attempt.send(input, (token) => api.createProject(accountId, input, token));
		navigate(`/projects/${id}`);
	});
	return (
		<ActDialog
			onClose={onClose}
			title={t("Create a project")}
			closeOnClickOutside={draft === EMPTY_DRAFT}
			action={create}
			act={t("Create")}
		>
			<KeyFields ofProject draft={draft} onChange={setDraft} error={create.error} />
		</ActDialog>
	);
}
