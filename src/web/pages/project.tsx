import { Button } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { CapBar } from "../parts/cap-bar.tsx";
import { EndDialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icons.tsx";
import { Facts, Page, Panel, State } from "../parts/page.tsx";
import { Empty, Reading } from "../parts/problem.tsx";
import { DataTable, fromList } from "../parts/table.tsx";
import { Amount, Id, Moment } from "../parts/text.tsx";
import { useList, useResource } from "../resource.ts";
import { useAccount, useMay } from "../session.tsx";
import { rich, t } from "../texts.tsx";
import type { ProjectView } from "../views.ts";
import { limitsText } from "./key.tsx";
import { KeyCreateDialog } from "./key-create.tsx";
import { SettingsDialog } from "./key-form.tsx";
import { KEY_COLUMNS } from "./keys.tsx";
import { ProjectMembers } from "./project-members.tsx";

export default function ProjectPage({ id }: { id: string }) {
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
			<Button size="xs" variant="default" onClick={() => setDialog("edit")}>
				{t("Edit")}
			</Button>
			<Button size="xs" variant="light" color="red" onClick={() => setDialog("archive")}>
				{t("Archive")}
			</Button>
		</>
	);

	return (
		<Page title={item?.name ?? t("Project")} aside={actions}>
			<Reading of={project} height={220} />
			{item && (
				<>
					<ProjectFacts item={item} />
					<ProjectKeys item={item} onCreated={() => void project.reload()} />
					<ProjectMembers item={item} />
					{dialog === "edit" && <EditProjectDialog item={item} onClose={close} />}
					{dialog === "archive" && <ArchiveDialog item={item} onClose={close} />}
				</>
			)}
		</Page>
	);
}

function ProjectFacts({ item }: { item: ProjectView }) {
	return (
		<Panel title={t("Project")}>
			<Facts
				of={{
					[t("State")]: <State value={item.state} />,
					[t("Id")]: <Id value={item.id} label={t("Copy the project's id")} />,
					[t("Cap")]: <CapBar item={item} />,
					[t("Spent in all")]: <Amount nanoUsd={item.spentNanoUsd} />,
					[t("Models")]: item.models.join(", ") || t("All available models"),
					[t("Limits")]: limitsText(item),
					[t("Created")]: <Moment atMs={item.createdAtMs} />,
					[t("Archived")]: item.archivedAtMs !== null && <Moment atMs={item.archivedAtMs} />,
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
		<Button size="xs" variant="default" leftSection={<Icon name="plus" />} onClick={() => setOpen(true)}>
			{t("Create a key")}
		</Button>
	);
	return (
		<Panel flush title={t("Keys")} aside={create}>
			<DataTable
				label={t("Keys of this project")}
				columns={KEY_COLUMNS.filter(({ label }) => label !== t("Project"))}
				{...fromList(list)}
				rowKey={(key) => key.id}
				empty={
					<Empty title={t("No keys yet.")}>
						{t("Make one here, or move one: a key's page says which project it has.")}
					</Empty>
				}
			/>
			<KeyCreateDialog
				open={isOpen}
				projectId={item.id}
				onClose={() => setOpen(false)}
				onCreated={() => {
					void list.reload();
					onCreated();
				}}
			/>
		</Panel>
	);
}

function EditProjectDialog({ item, onClose }: { item: ProjectView; onClose: () => void }) {
	const account = useAccount();
	return (
		<SettingsDialog
			title={t("Edit the project")}
			item={item}
			fields={{ ofProject: true }}
			onSave={(changes) => api.editProject(account.id, item.id, changes)}
			onClose={onClose}
		/>
	);
}

/** Archiving is final. */
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
				"Every application that uses a key of {name} is refused from now on. This cannot be undone. Requests that are already admitted finish and are charged.",
				{ name: <strong>{item.name}</strong> },
			)}
		</EndDialog>
	);
}
