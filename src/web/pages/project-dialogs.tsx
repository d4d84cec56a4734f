import { useState } from "react";
import { api } from "../api.ts";
import { FencedDialog, TypedNameForm } from "../parts/dialog.tsx";
import { useAction } from "../resource.ts";
import { useAccount } from "../session.tsx";
import { rich, t } from "../texts.tsx";
import type { Fence, ProjectView } from "../views.ts";
import { SettingsDialog } from "./key-edit.tsx";

export function EditProjectDialog({ item, onClose }: { item: ProjectView; onClose: () => void }) {
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

/** As revoking a key it cannot be undone, and says since when no instance accepts any of its keys. */
export function ArchiveDialog({ item, onClose }: { item: ProjectView; onClose: () => void }) {
	const account = useAccount();
	const [fence, setFence] = useState<Fence>();
	const archive = useAction(async () => setFence((await api.archiveProject(account.id, item.id)).fence));
	return (
		<FencedDialog
			title={t("Archive the project")}
			fence={fence}
			done={t("No instance accepts a key of this project")}
			onClose={onClose}
		>
			<TypedNameForm
				name={item.name}
				label={t("Type the project's name: {name}", { name: item.name })}
				act={t("Archive")}
				action={archive}
				onCancel={onClose}
			>
				{rich(
					"Every application that uses a key of {name} is refused from now on. This cannot be undone. Requests that are already admitted finish and are charged.",
					{ name: <strong>{item.name}</strong> },
				)}
			</TypedNameForm>
		</FencedDialog>
	);
}
