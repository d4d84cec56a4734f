import { useState } from "react";
import { api } from "../api.ts";
import { formatCount } from "../format.ts";
import { FencedDialog, TypedNameForm } from "../parts/dialog.tsx";
import { useAction } from "../resource.ts";
import { useAccount } from "../session.tsx";
import { plural, rich, t } from "../texts.tsx";
import type { Fence, KeyView } from "../views.ts";

/** Revoking cannot be undone: the name is typed, and the answer says since when no instance accepts the key. */
export function RevokeDialog({ item, onClose }: { item: KeyView; onClose: () => void }) {
	const account = useAccount();
	const [result, setResult] = useState<{ fence: Fence; runningRequests: number }>();
	const revoke = useAction(async () => setResult(await api.revokeKey(account.id, item.id)));

	return (
		<FencedDialog
			title={result ? t("Key revoked") : t("Revoke the key")}
			fence={result?.fence}
			done={t("No instance accepts this key")}
			below={result && <p>{runningText(result.runningRequests)}</p>}
			onClose={onClose}
		>
			<TypedNameForm
				name={item.name}
				label={t("Type the key's name: {name}", { name: item.name })}
				act={t("Revoke")}
				action={revoke}
				onCancel={onClose}
			>
				{rich(
					"Every application that uses {name} is refused from now on. This cannot be undone. Requests that are already admitted finish and are charged.",
					{ name: <strong>{item.name}</strong> },
				)}
			</TypedNameForm>
		</FencedDialog>
	);
}

function runningText(count: number): string {
	if (count === 0) return t("No request was running under it.");
	return plural(
		count,
		{ one: "{count} admitted request is finishing.", other: "{count} admitted requests are finishing." },
		{ count: formatCount(count) },
	);
}
