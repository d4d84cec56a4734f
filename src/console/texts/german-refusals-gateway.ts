/** The same of what the gateway says in the playground and of batches. Programs read it in English. */
export const germanRefusalsGateway: Readonly<Record<string, string>> = {
	// The request.
	"The credit of this account does not cover the request.": "Das Guthaben dieses Kontos deckt die Anfrage nicht.",
	"The spending cap of this API key's project does not cover the request.":
		"Die Obergrenze des Projekts dieses Schlüssels deckt die Anfrage nicht.",
	"The spending cap of this API key does not cover the request.":
		"Die Obergrenze dieses Schlüssels deckt die Anfrage nicht.",
	"The cap begins anew at {moment}.": "Die Obergrenze beginnt am {moment} neu.",
	"The request may cost up to USD {required}, available is USD {available}.":
		"Die Anfrage kann bis zu USD {required} kosten, verfügbar sind USD {available}.",
	"A request with `max_tokens` of {count} would fit.": "Eine Anfrage mit `max_tokens` von {count} würde passen.",
	"{who} may run {count} requests at once.": "{who} kann {count} Anfragen gleichzeitig ausführen.",
	"{who} may send {count} requests a minute.": "{who} kann {count} Anfragen in der Minute senden.",
	"The limits of this API key cannot be checked right now.":
		"Die Limits dieses Schlüssels können gerade nicht geprüft werden.",
	"Too many requests wait for credit of this account.": "Zu viele Anfragen warten auf Guthaben dieses Kontos.",
	"Credit cannot be reserved right now.": "Gerade kann kein Guthaben reserviert werden.",
	"Sign in to the console once before using the API.":
		"Melden Sie sich einmal in der Konsole an, bevor Sie die API nutzen.",
	"Using the API takes at least one confirmed top-up of USD 100 or more.":
		"Für die API braucht es mindestens eine bestätigte Aufladung von USD 100 oder mehr.",
	"The service is catching up. Please try again.": "Der Dienst holt gerade auf. Bitte versuchen Sie es noch einmal.",
	"This API key was revoked. Use another key of your account.":
		"Dieser Schlüssel wurde widerrufen. Verwenden Sie einen anderen Schlüssel Ihres Kontos.",
	"This API key expired at {moment}. Use another key of your account.":
		"Dieser Schlüssel ist am {moment} abgelaufen. Verwenden Sie einen anderen Schlüssel Ihres Kontos.",
	"This account is suspended. Please contact the operator of the service.":
		"Dieses Konto ist gesperrt. Bitte wenden Sie sich an den Betreiber des Dienstes.",
	"The project of this API key was archived. Use a key of another project of your account.":
		"Das Projekt dieses Schlüssels wurde archiviert. Verwenden Sie einen Schlüssel eines anderen Projekts Ihres Kontos.",
	"This API key only reads: /v1/usage, /v1/credits, /v1/key and /v1/models. Use another key of your account.":
		"Dieser Schlüssel liest nur: /v1/usage, /v1/credits, /v1/key und /v1/models. Verwenden Sie einen anderen Schlüssel Ihres Kontos.",
	"The API key cannot be checked right now. Please try again.":
		"Der Schlüssel kann gerade nicht geprüft werden. Bitte versuchen Sie es noch einmal.",
	"The API key is not valid. Please check that it was copied in full.":
		"Der Schlüssel ist ungültig. Bitte prüfen Sie, ob er vollständig kopiert wurde.",

	// The model's answer.
	"The model `{id}` does not exist or is not connected: see GET /v1/models.":
		"Das Modell `{id}` gibt es nicht, oder es ist nicht verbunden: siehe GET /v1/models.",
	"The model `{id}` was retired on {day}: see GET /v1/models.":
		"Das Modell `{id}` wurde am {day} abgeschaltet: siehe GET /v1/models.",
	"The model `{id}` does not take images.": "Das Modell `{id}` nimmt keine Bilder an.",
	"Images must be sent as `data:` URLs to this model.":
		"Bilder müssen an dieses Modell als `data:`-URL gesendet werden.",
	"The model server refused the request as malformed.": "Der Modellserver hat die Anfrage als fehlerhaft abgewiesen.",
	"The prompt and the requested output do not fit the context of this model.":
		"Eingabe und gewünschte Ausgabe passen nicht in den Kontext dieses Modells.",
	"Two servers of this model failed on this request, and they answer others: sent again, it would fail again.":
		"Zwei Server dieses Modells sind an dieser Anfrage gescheitert und antworten auf andere: Noch einmal gesendet würde sie wieder scheitern.",
	"The model server did not answer in time.": "Der Modellserver hat nicht rechtzeitig geantwortet.",
	"The servers of this model are busy.": "Die Server dieses Modells sind ausgelastet.",
	"The request was given up.": "Die Anfrage wurde abgebrochen.",
	"The model server failed to answer.": "Der Modellserver konnte nicht antworten.",
	"The service is restarting.": "Der Dienst startet gerade neu.",

	// Files and batches.
	"The file cannot be read at present.": "Die Datei kann zurzeit nicht gelesen werden.",
	"The file is larger than {count} MB.": "Die Datei ist größer als {count} MB.",
	"This account has as many files as it may have: delete some of them.":
		"Dieses Konto hat so viele Dateien, wie es haben darf: Löschen Sie einige.",
	"The files of this account take as much space as they may: delete some of them.":
		"Die Dateien dieses Kontos belegen so viel Platz, wie sie dürfen: Löschen Sie einige.",
	"There is no space for files at present. Try again later.":
		"Zurzeit ist kein Platz für Dateien. Versuchen Sie es später wieder.",
	"The file was deleted while it was written.": "Die Datei wurde gelöscht, während sie geschrieben wurde.",
	"There is no such file.": "Diese Datei gibt es nicht.",
	"An account has at most {count} batches that are not over.":
		"Ein Konto hat höchstens {count} Stapel, die noch nicht zu Ende sind.",
	"The batch is over: it is {state}, and cannot be cancelled.":
		"Der Stapel ist zu Ende ({state}) und kann nicht abgebrochen werden.",
	"Managed batches are not available: no deployment takes them.":
		"Stapel stehen nicht zur Verfügung: Kein Modell nimmt sie an.",
	"The file's purpose must be `batch`.": "Der Zweck der Datei muss `batch` sein.",
	"The input of a batch has at most 200 MB.": "Die Eingabe eines Stapels hat höchstens 200 MB.",
	"The input file was deleted, or has ended.": "Die Eingabedatei wurde gelöscht oder ist abgelaufen.",
	"The output files cannot be written any more.": "Die Ausgabedateien können nicht mehr geschrieben werden.",
	"The API key that made the batch was revoked or has expired: what was not sent before is cancelled.":
		"Der Schlüssel des Stapels wurde widerrufen oder ist abgelaufen: Was noch nicht gesendet war, ist abgebrochen.",
	"`custom_id` must be a text that names the line.": "`custom_id` muss ein Text sein, der die Zeile benennt.",
	"`custom_id` has more than {count} characters.": "`custom_id` hat mehr als {count} Zeichen.",
	"`method` is missing: it must be `POST`.": "`method` fehlt: Es muss `POST` sein.",
	"`method` must be `POST`.": "`method` muss `POST` sein.",
	"`url` is missing: it must be the endpoint of the batch.": "`url` fehlt: Es muss der Endpunkt des Stapels sein.",
	"`url` must be the endpoint of the batch, {endpoint}.": "`url` muss der Endpunkt des Stapels sein, {endpoint}.",
	"`body` must be the request, a JSON object.": "`body` muss die Anfrage sein, ein JSON-Objekt.",
	"`body.model` must be the ID of a model: see GET /v1/models.":
		"`body.model` muss die ID eines Modells sein: siehe GET /v1/models.",
	"`stream` has no place in a batch: answers are written whole.":
		"`stream` hat in einem Stapel keinen Platz: Antworten werden als Ganzes geschrieben.",
	"The line is not a JSON object.": "Die Zeile ist kein JSON-Objekt.",
	"The line is not valid JSON.": "Die Zeile ist kein gültiges JSON.",
	"The model `{id}` does not take batches at {endpoint}: see `modes` at GET /v1/models.":
		"Das Modell `{id}` nimmt an {endpoint} keine Stapel an: siehe `modes` bei GET /v1/models.",
	"A batch has at most {count} lines.": "Ein Stapel hat höchstens {count} Zeilen.",
	"A batch has at most {count} inputs.": "Ein Stapel hat höchstens {count} Eingaben.",
	"The line has more than {count} bytes.": "Die Zeile hat mehr als {count} Bytes.",
	"Every line of a batch names the same model, here `{id}`.":
		"Jede Zeile eines Stapels nennt dasselbe Modell, hier `{id}`.",
	"The input file has no lines.": "Die Eingabedatei hat keine Zeilen.",
	"Another line before this one has the same `custom_id`.": "Eine frühere Zeile hat dieselbe `custom_id`.",
	"The body has {what}.": "Die Anfrage hat {what}.",
};
