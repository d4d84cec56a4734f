import { useState } from "react";
import { api } from "../api.ts";
import { formatCount } from "../format.ts";
import { CapBar } from "../parts/cap-bar.tsx";
import { ActDialog } from "../parts/dialog.tsx";
import { ActButton } from "../parts/form.tsx";
import { Page, State } from "../parts/page.tsx";
import { Empty } from "../parts/problem.tsx";
import { type Column, fromList, TablePanel } from "../parts/table.tsx";
import { useAction, useList } from "../resource.ts";
import { Link, navigate, useCreating } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { t } from "../texts.tsx";
import { type Attempt, useAttempt } from "../token.ts";
import type { ProjectView } from "../views.ts";
import { EMPTY_DRAFT, KeyFields, settingsOf } from "./key-form.tsx";

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

export default function ProjectsPage() {
	const account = useAccount();
	const may = useMay();
	const [isOpen, setOpen] = useCreating();
	// Outlives the dialog: a retry after a lost answer and a cancelled dialog does not create a second project.
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
				rowKey={(project) => project.id}
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

function CreateDialog(props: { accountId: string; attempt: Attempt; onClose: () => void }) {
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
