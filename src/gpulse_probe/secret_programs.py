"""Which programs take a secret by a short option, or as a word of its own."""

# After the option as the next word ("p"), joined to it ("p+"), as a part of either: "u:" user:password, "U%"
# user%password, "u," user,password, "b=" a cookie. "login" stands for wandb login, docker login and the like.
_FLAGS = (
    ("p+", "7z 7za mariadb mariadb-dump mysql mysqladmin mysqldump mysqlimport"),
    ("p+ hp+", "rar unrar"),
    ("u: U: -user: -proxy-user: b=", "curl"),
    ("a:", "http https xh"),
    ("P P+", "bcp ipmitool isql mosquitto_pub mosquitto_sub sqlcmd unzip zip"),
    ("w w+", "ldapmodify ldapsearch"),
    ("p", "cqlsh login"),
    ("p p+", "mongo mongodump mongosh rdesktop sshpass twine"),
    ("u,", "lftp"),
    ("k", "openssl"),
    ("a", "redis-cli"),
    ("U% -user%", "smbclient"),
    ("xp", "sendEmail"),
    ("A X", "snmpget snmpwalk"),
    ("N P", "ssh-keygen"),
    # What these take by -p is a port, also where one of the others starts them.
    ("", "python python3 rsync scp ssh"),
)
FLAGS = {name: tuple(flags.split()) for flags, names in _FLAGS for name in names.split()}
LOGIN = FLAGS["login"] = ("p",)

# After which word of a program, and how many others, comes the secret. Options are not counted.
_STORE = {"set": 3, "add": 3}
PLACES = {
    "dvc": {"password": 0},
    "gcloud": {"activate-refresh-token": 1},
    "kaggle": {"key": 0},
    "mc": _STORE,
    "mcli": _STORE,
    "ngrok": {"authtoken": 0, "add-authtoken": 0, "add-api-key": 0},
    "nmcli": {"password": 0},
    "rabbitmqctl": {"add_user": 1, "change_password": 1},
    "rclone": {"obscure": 0, "pass": 0, "secret_access_key": 0},
    "vault": {"login": 0, "unwrap": 0, "unseal": 0},
}
