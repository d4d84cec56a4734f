import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { t } from "../texts.tsx";

/** What came of it, in the dialog's place: nothing is left but to close it. */
export function DialogDone({ onClose, children }: { onClose: () => void; children: ReactNode }) {
	return (
		<div className="stack">
			{children}
			<div className="form-end">
				<Button onClick={onClose}>{t("Done")}</Button>
			</div>
		</div>
	);
}
