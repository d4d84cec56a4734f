import { Button, Modal, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { api } from "../api.ts";
import { FenceNotice } from "../parts/fence-notice.tsx";
import { Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { useAccount } from "../session.tsx";
import { rich, t } from "../texts.tsx";
import type { Fence, ProjectView } from "../views.ts";
import { changesOf, draftOf, KeyFields } from "./key-form.tsx";

export function EditProjectDialog({ item, onClose }: { item: ProjectView; onClose: () => void }) {
	const account = useAccount();
	const [before] = useState(() => draftOf(item));
	const [draft, setDraft] = useState(before);
	const [fence, setFence] = useState<Fence>();
	const save = useAction(async () => {
		const changed = await api.editProject(account.id, item.id, changesOf(draft, before));
		setFence(changed.fence);
	});
	return (
		<FencedDialog
			title={t("Edit the project")}
			fence={fence}
			done={t("The change applies on all instances")}
			onClose={onClose}
		>
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					void save.run();
				}}
			>
				<KeyFields ofProject draft={draft} onChange={setDraft} error={save.error} />
				{save.error && <Problem error={save.error} />}
				<div className="form-end">
					<Button variant="default" onClick={onClose}>
						{t("Cancel")}
					</Button>
					<Button type="submit" loading={save.busy}>
						{t("Save")}
					</Button>
				</div>
			</form>
		</FencedDialog>
	);
}

/** As revoking a key it cannot be undone, and says since when no instance accepts any of its keys. */
export function ArchiveDialog({ item, onClose }: { item: ProjectView; onClose: () => void }) {
	const account = useAccount();
	const [typed, setTyped] = useState("");
	const [fence, setFence] = useState<Fence>();
	const archive = useAction(async () => setFence((await api.archiveProject(account.id, item.id)).fence));
	return (
		<FencedDialog
			title={t("Archive the project")}
			fence={fence}
			done={t("No instance accepts a key of this project")}
			onClose={onClose}
		>
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					if (typed.trim() === item.name) void archive.run();
				}}
			>
				<p>
					{rich(
						"Every application that uses a key of {name} is refused from now on. This cannot be undone. Requests that are already admitted finish and are charged.",
						{ name: <strong>{item.name}</strong> },
					)}
				</p>
				<TextInput
					label={t("Type the project's name: {name}", { name: item.name })}
					autoComplete="off"
					data-autofocus
					value={typed}
					onChange={(event) => setTyped(event.currentTarget.value)}
				/>
				{archive.error && <Problem error={archive.error} />}
				<div className="form-end">
					<Button variant="default" onClick={onClose}>
						{t("Cancel")}
					</Button>
					<Button type="submit" className="danger-filled" disabled={typed.trim() !== item.name} loading={archive.busy}>
						{t("Archive")}
					</Button>
				</div>
			</form>
		</FencedDialog>
	);
}

function FencedDialog(props: {
	title: string;
	fence: Fence | undefined;
	done: string;
	onClose: () => void;
	children: ReactNode;
}) {
	const { title, fence, done, onClose, children } = props;
	return (
		<Modal opened onClose={onClose} title={title} closeButtonProps={{ "aria-label": t("Close") }}>
			{fence === undefined ? (
				children
			) : (
				<div className="stack">
					<FenceNotice fence={fence} done={done} />
					<div className="form-end">
						<Button onClick={onClose}>{t("Done")}</Button>
					</div>
				</div>
			)}
		</Modal>
	);
}
