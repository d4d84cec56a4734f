import { useState } from "react";
import type { KeySettingsInput } from "../api.ts";
import { ActForm, FencedDialog } from "../parts/dialog.tsx";
import { useAction } from "../resource.ts";
import { t } from "../texts.tsx";
import type { Fence } from "../views.ts";
import { changesOf, draftOf, KeyFields } from "./key-form.tsx";

/** Changes what a key or a project has, and says since when no instance goes by what it had. */
export function SettingsDialog(props: {
	title: string;
	item: Parameters<typeof draftOf>[0];
	fields: Pick<Parameters<typeof KeyFields>[0], "readsOnly" | "ofProject" | "projects">;
	onSave: (changes: Partial<KeySettingsInput>) => Promise<{ readonly fence: Fence }>;
	onClose: () => void;
}) {
	const [before] = useState(() => draftOf(props.item));
	const [draft, setDraft] = useState(before);
	const [fence, setFence] = useState<Fence>();
	const save = useAction(async () => setFence((await props.onSave(changesOf(draft, before))).fence));
	return (
		<FencedDialog
			title={props.title}
			fence={fence}
			done={t("The change applies on all instances")}
			onClose={props.onClose}
		>
			<ActForm action={save} act={t("Save")} onCancel={props.onClose}>
				<KeyFields {...props.fields} draft={draft} onChange={setDraft} error={save.error} />
			</ActForm>
		</FencedDialog>
	);
}
