import { PASSWORD_CHARS_MIN } from "../../console/sign-in/password-length.ts";
import { t } from "../texts.tsx";
import { PasswordField } from "./password-field.tsx";
import { TextField } from "./text-field.tsx";

/** Who somebody is, asked for in the same words wherever it is asked: a browser fills it in by these names. */

interface Given {
	readonly value: string;
	readonly onChange: (value: string) => void;
}

export function NameField(given: Given) {
	return (
		<TextField
			label={t("Name")}
			description={t("Of you or your company")}
			autoComplete="name"
			maxLength={100}
			{...given}
		/>
	);
}

/** `username` for who is known by it already, `email` for who begins. */
export function EmailField(given: Given & { autoComplete: "username" | "email"; label?: string; name?: string }) {
	return <TextField label={t("Email")} type="email" {...given} />;
}

export function NewPasswordField(given: Given & { label?: string; description?: string; maxLength?: number }) {
	return (
		<PasswordField
			label={t("Password")}
			description={t("At least {count} characters", { count: PASSWORD_CHARS_MIN })}
			autoComplete="new-password"
			minLength={PASSWORD_CHARS_MIN}
			{...given}
		/>
	);
}
