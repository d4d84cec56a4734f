import { useEffect, useState } from "react";
import { api } from "../api.ts";
import { onPasswordAsked } from "../password-again.ts";
import { useAction } from "../resource.ts";
import { t } from "../texts.tsx";
import { ActDialog } from "./dialog.tsx";
import { PasswordField } from "./fields.tsx";

/** Dialog that opens above all pages when the server requires the password before an action. */
export function PasswordDialog() {
	const [answer, setAnswer] = useState<(given: boolean) => void>();
	const [password, setPassword] = useState("");
	useEffect(() => {
		onPasswordAsked(() => new Promise((resolve) => setAnswer(() => resolve)));
		return () => onPasswordAsked(undefined);
	}, []);
	function close(given: boolean) {
		answer?.(given);
		setAnswer(undefined);
		setPassword("");
		give.clear();
	}
	const give = useAction(async () => {
		await api.reauthenticate(password);
		return true;
	});
	return (
		<ActDialog
			opened={answer !== undefined}
			onClose={() => close(false)}
			title={t("Confirm your password")}
			zIndex={400}
			action={give}
			act={t("Continue")}
			onSubmit={async () => {
				if ((await give.run()) === true) close(true);
			}}
			below={<p className="small dim">{t("If you signed in without a password, sign out and in again instead.")}</p>}
		>
			<p>{t("This action requires a recent sign-in. Enter your password to continue.")}</p>
			<PasswordField
				label={t("Password")}
				name="password"
				autoComplete="current-password"
				value={password}
				onChange={setPassword}
			/>
		</ActDialog>
	);
}
