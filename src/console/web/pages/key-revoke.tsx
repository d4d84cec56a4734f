import { Button, Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { api } from "../api.ts";
import { formatCount } from "../format.ts";
import { FenceNotice } from "../parts/fence-notice.tsx";
import { Problem } from "../parts/problem.tsx";
import { useAction } from "../resource.ts";
import { useAccount } from "../session.tsx";
import { plural, rich, t } from "../texts.tsx";
import type { Fence, KeyView } from "../views.ts";

/** Revoking cannot be undone: the name is typed, and the answer says since when no instance accepts the key. */
export function RevokeDialog({ item, onClose }: { item: KeyView; onClose: () => void }) {
	const account = useAccount();
	const [typed, setTyped] = useState("");
	const [result, setResult] = useState<{ fence: Fence; runningRequests: number }>();
	const revoke = useAction(async () => setResult(await api.revokeKey(account.id, item.id)));

	if (result) {
		return (
			<Modal opened onClose={onClose} title={t("Key revoked")} closeButtonProps={{ "aria-label": t("Close") }}>
				<div className="stack">
					<FenceNotice fence={result.fence} done={t("No instance accepts this key")} />
					<p>{runningText(result.runningRequests)}</p>
					<div className="form-end">
						<Button onClick={onClose}>{t("Done")}</Button>
					</div>
				</div>
			</Modal>
		);
	}
	return (
		<Modal opened onClose={onClose} title={t("Revoke the key")} closeButtonProps={{ "aria-label": t("Close") }}>
			<form
				className="form"
				onSubmit={(event) => {
					event.preventDefault();
					if (typed.trim() === item.name) void revoke.run();
				}}
			>
				<p>
					{rich(
						"Every application that uses {name} is refused from now on. This cannot be undone. Requests that are already admitted finish and are charged.",
						{ name: <strong>{item.name}</strong> },
					)}
				</p>
				<TextInput
					label={t("Type the key's name: {name}", { name: item.name })}
					autoComplete="off"
					data-autofocus
					value={typed}
					onChange={(event) => setTyped(event.currentTarget.value)}
				/>
				{revoke.error && <Problem error={revoke.error} />}
				<div className="form-end">
					<Button variant="default" onClick={onClose}>
						{t("Cancel")}
					</Button>
					<Button type="submit" className="danger-filled" disabled={typed.trim() !== item.name} loading={revoke.busy}>
						{t("Revoke")}
					</Button>
				</div>
			</form>
		</Modal>
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
